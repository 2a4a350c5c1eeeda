from . import channel as channel
from . import values as values
from .channel import UdpChannel as UdpChannel
from .stream import AnswerSequence as AnswerSequence
from .stream import Arrival as Arrival
from .stream import StreamCounts as StreamCounts
from .stream import StreamLateness as StreamLateness
