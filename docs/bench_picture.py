"""Write `_static/bench.png`, the bench with numbers at its parts: `python docs/bench_picture.py`.

It needs Xvfb, so the file is committed, and the build only copies it.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from PIL import ImageDraw, ImageFont, ImageGrab

DISPLAY, SIZE = ":77", "1280x900"
PARTS = {1: (1200, 60), 2: (1046, 480), 3: (620, 80), 4: (740, 740), 5: (520, 330)}
"""Places of the numbers, in pixels."""

server = subprocess.Popen(["Xvfb", DISPLAY, "-screen", "0", f"{SIZE}x24", "-nolisten", "tcp"])
bench = subprocess.Popen(
    [
        Path(sys.executable).with_name("irb-twin"),
        "gui",
        "irb1400",
        "--controller",
        "pid",
        "--drives",
        "rigid",
    ],
    env=os.environ | {"DISPLAY": DISPLAY},
)
try:
    time.sleep(40.0)  # s, after which the arm's functions are compiled and the window is drawn
    picture = ImageGrab.grab(xdisplay=DISPLAY)
finally:
    bench.kill()
    server.terminate()
draw = ImageDraw.Draw(picture)
for number, (x, y) in PARTS.items():
    draw.ellipse((x - 14, y - 14, x + 14, y + 14), fill="#0072b2")
    draw.text((x, y), str(number), fill="white", anchor="mm", font=ImageFont.load_default(20))
picture.save(Path(__file__).parent / "_static" / "bench.png", optimize=True)
