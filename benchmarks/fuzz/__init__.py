"""Hostile input: every public function, every spec and every saved file answers it in its own words, `make fuzz`.

*Calls.* A family is a module of the public interface. Each of its functions and classes has a call that works, whose
arguments are replaced, one or two at a time, by values that have no business there: text, dates, masked, nested, ragged
and complex arrays, frames, integers of thousands of digits, numbers that are not finite, objects of other libraries. An
answer is a value without NaN, an `InputError` that begins with the name of what is wrong, a `NumericalError`, or that
there is not enough memory or no such file; anything else is a *traceback*.

*Specs.* Tables of the fields that there are, with values that fit and values that do not, through what
``overlaps check`` does.

*Files.* Bits flipped and ends cut off of saved trajectories: told, or loaded as they were written.
"""
