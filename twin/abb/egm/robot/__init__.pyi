from . import session as session
from .inbox import AnswerCounts as AnswerCounts
from .session import StreamRecord as StreamRecord
