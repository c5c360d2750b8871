from treadle.tensor.random import *
