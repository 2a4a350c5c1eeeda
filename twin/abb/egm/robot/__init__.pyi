from . import session as session
from .exchange import AnswerCounts as AnswerCounts
from .session import StreamRecord as StreamRecord
