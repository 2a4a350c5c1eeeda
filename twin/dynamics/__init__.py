"""The equation of motion in joints, in the tool and on surfaces; Norrlöf's main axes and elastic joint."""
