"""Data models, one to a file: `MODEL`, the class; `examples()` and `REFUSED`, what the tests of all models build.

A new file is a new model, known to problems and specs without another line. `REFUSED` lists arguments outside its
domain, the first of each being the field that the refusal must name.
"""

from ...interface.folder import modules, part

MODELS: tuple[type, ...] = tuple(part(module, "MODEL") for module in modules(__name__).values())
