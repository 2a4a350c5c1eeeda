from .signals import RunningSensors as RunningSensors
