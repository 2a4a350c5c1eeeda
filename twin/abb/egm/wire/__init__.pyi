from . import channel as channel
from . import encoding as encoding
from .channel import UdpChannel as UdpChannel
from .messages import AnswerSequence as AnswerSequence
from .messages import Arrival as Arrival
from .messages import StreamCounts as StreamCounts
from .messages import StreamLateness as StreamLateness
