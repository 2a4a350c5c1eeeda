from .learning_controller import CorrectedController as CorrectedController
from .learning_controller import Iteration as Iteration
from .learning_controller import LearnedInput as LearnedInput
from .learning_controller import LearningController as LearningController
from .learning_controller import learn as learn
from .updates import Lead as Lead
from .updates import NormOptimal as NormOptimal
from .updates import input_responses as input_responses
