"""Writes the files of this folder: `python make.py FOLDER`, with PyTorch 2.15 and NumPy 2."""

import collections
import os
import sys

import numpy as np
import torch

folder = sys.argv[1]


def save(content, name, **options):
    torch.save(content, os.path.join(folder, name), **options)


dtypes = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
dtypes += [torch.float16, torch.bfloat16, torch.float32, torch.float64]
save({str(dtype).split(".")[1]: torch.arange(6).reshape(2, 3).to(dtype) for dtype in dtypes}, "dtypes.pt")

# Parameter i counts from 10 i.
net = torch.nn.Sequential(
    collections.OrderedDict(conv=torch.nn.Conv2d(1, 2, 3), norm=torch.nn.BatchNorm2d(2), fc=torch.nn.Linear(2, 3))
)
with torch.no_grad():
    for i, parameter in enumerate(net.parameters()):
        parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + 10 * i)
save(net.state_dict(), "state_dict.pth")

optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
net.conv(torch.ones(1, 1, 3, 3)).sum().backward()
optimizer.step()
checkpoint = {"epoch": 7, "loss": 0.5, "note": "été", "best": None, "done": True, "large": 2**40, "negative": -300}
checkpoint |= {"shape": (1, 2), "model": net.state_dict(), "optimizer": optimizer.state_dict()}
save(checkpoint, "checkpoint.pt")

x = torch.arange(24.0).reshape(2, 3, 4)
views = {"whole": x, "transposed": x.permute(2, 0, 1), "part": x[:, 1:, ::2], "row": x[1, 2], "one": x[0, 0, 1]}
views |= {"expanded": torch.tensor([1.0, 2.0])[:, None].expand(2, 3), "empty": torch.zeros(2, 0)}
views |= {"last": x.reshape(1, 2, 3, 4).to(memory_format=torch.channels_last), "scalar": torch.tensor(2.5)}
views |= {"parameter": torch.nn.Parameter(x[0]), "diagonal": torch.arange(9.0).reshape(3, 3).diagonal()}
save(views, "views.pt")

save(torch.tensor([[1.0, 2.0]]), "single.pt")
save({"x": torch.ones(2)}, "protocol4.pt", pickle_protocol=4)

# What is refused.
save({"x": torch.ones(2)}, "legacy.pt", _use_new_zipfile_serialization=False)
save(torch.nn.Linear(2, 3), "module.pt")
save({"x": torch.ones(2, dtype=torch.complex64)}, "complex.pt")
torch.jit.script(torch.nn.Linear(2, 3)).save(os.path.join(folder, "script.pt"))


class Code:
    def __reduce__(self):
        return os.system, ("touch /tmp/namegrad-was-run",)


save({"x": torch.ones(2), "y": Code()}, "code.pt")

a, b, c = np.arange(6, dtype="<i2").reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(1.5)
others = {"bools": np.array([True, False]), "big": np.arange(3, dtype=">f4"), "layer/weight": np.ones((2, 2), "f2")}
np.savez(os.path.join(folder, "arrays.npz"), a=a, b=b, c=c, **others)
np.savez_compressed(os.path.join(folder, "compressed.npz"), a=np.arange(1000) % 7, zeros=np.zeros((10, 10)))
np.savez(os.path.join(folder, "objects.npz"), a=np.array([{"x": 1}], dtype=object))
