"""`torch.distributed.elastic`: what scripts for torchrun import."""
