"""Where a run starts: block-resolved overlaps, and the weights behind them where there are any.

With rows W of the student and B of the teacher (entries O(1), fields W x/√N) and means μ of the inputs (length O(1)),
level b contributes

    Q_b = W_b W_bᵀ/N      R_b = W_b B_bᵀ/N      T_b = B_b B_bᵀ/N      m_b = W_b μ_bᵀ/√N

and the fields of a component have covariance Σ_b ω_b (Q_b, R_b; R_bᵀ, T_b), times its variance, and mean Σ_b m_b.
Teacher vectors and means are the fixed directions of a problem, in this order: A_b = (R_b, m_b), and G_b has the
overlaps of the fixed directions with each other. Micro needs the weights, meso the overlaps and the size, macro the
overlaps alone; given one start, all three begin at the same point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data import TeacherFields
from ..interface.checks import array, checked, number, whole
from ..interface.errors import InputError, shown
from .statement import Problem

Array = NDArray[np.float64]
LIMIT = 1e8  # an overlap beyond this has diverged
LARGEST_SCALE = 1e100  # of weights whose overlaps do not overflow


@dataclass(frozen=True, eq=False)
class Start:
    """A starting point; made by `draw`, `Start.from_weights` or `Start.from_overlaps`.

    Attributes
    ----------
    Q: overlaps of the students per level, (levels, K, K).
    A, G: overlaps of students with the fixed directions, (levels, K, M+P), and of these, (levels, M+P, M+P); M teachers
        come first, then P means.
    R, m, T: parts of them: student with teacher (levels, K, M), student with mean (levels, K, P), teachers.
    v, u: readouts of student (K,) and teacher (M,).
    fractions: share of the dimensions in each level, (levels,); the realised ones where there is a size.
    eigenvalues: of the covariance of the inputs, (levels,); the realised ones where there is a size.
    size: number of input dimensions N, or None (macro only).
    dimensions: dimensions per level, (levels,), or None.
    student, teacher, means: weights (K, N) and (M, N), mean vectors (P, N), or None (micro cannot run).
    own_readouts: whether v, u were given for this start, instead of being those of the problem.
    latent: law of the teacher's fields where it reads the latent of the inputs, not the inputs. The fixed directions of
        the teachers are then √N times the covariance of the inputs with its fields, (M, N), and R = Σ_b A_b.
    """

    Q: Array
    A: Array
    G: Array
    v: Array
    u: Array
    fractions: Array
    eigenvalues: Array
    size: int | None = None
    dimensions: NDArray[np.int64] | None = None
    student: Array | None = None
    teacher: Array | None = None
    means: Array | None = None
    own_readouts: bool = False
    latent: TeacherFields | None = None

    @property
    def seen(self) -> Array:
        """Factor with which the overlaps R_b of each level enter R, (levels,)."""
        return self.eigenvalues if self.latent is None else np.ones_like(self.eigenvalues)

    @property
    def teacher_fields(self) -> TeacherFields:
        """Covariance (M, M) and means (M, P) of the teacher's fields."""
        if self.latent is not None:
            return self.latent
        M = self.u.size
        return TeacherFields(np.einsum("b,bij->ij", self.eigenvalues, self.T), self.G[:, :M, M:].sum(0))

    @property
    def R(self) -> Array:
        return self.A[:, :, : self.u.size]

    @property
    def m(self) -> Array:
        return self.A[:, :, self.u.size :]

    @property
    def T(self) -> Array:
        return self.G[:, : self.u.size, : self.u.size]

    @classmethod
    @checked
    def from_weights(
        cls,
        problem: Problem,
        student: ArrayLike,
        teacher: ArrayLike | None = None,
        student_readout: ArrayLike | None = None,
        teacher_readout: ArrayLike | None = None,
    ) -> Start:
        """Start from weights: `student` (K, N), `teacher` (M, N), entries O(1), in the eigenbasis of the inputs.

        Coordinates are ordered by level: the first `problem.data.dimensions(N)[0]` belong to level 0, and so on. A
        problem without a teacher takes none, labelled rows bring their own. On a `HiddenManifold` the student has the
        coordinates of the inputs x and the teacher, (M, D), those of the latent.
        """
        W = array("student", student, (problem.student.units, None))
        data, size = problem.data, W.shape[1]
        width, dimensions = data.teacher_size(size), data.dimensions(size)
        if teacher is None:
            teacher = np.zeros((0, width)) if problem.row_teacher is None else problem.row_teacher
        elif problem.row_teacher is not None:
            raise InputError("teacher: labelled rows bring their own, their best linear map; leave it out")
        B = array("teacher", teacher, (problem.teacher_units, width))
        means = data.mean_vectors(size)
        fixed = data.turned(fixed_rows(data.teacher_rows(B, size), means))
        with np.errstate(over="ignore", invalid="ignore"):
            Q, A, G = block_overlaps(data.turned(W), fixed, dimensions)
        if not all(np.isfinite(overlaps).all() for overlaps in (Q, A, G)):
            name = "student" if not np.isfinite(Q).all() else "teacher"
            raise InputError(
                f"{name}: weights of {np.abs(W if name == 'student' else B).max():.1e} overflow when "
                "squared; use entries of order 1"
            )
        v, u = _readouts(problem, student_readout, teacher_readout)
        own = student_readout is not None or teacher_readout is not None
        omega, latent = data.eigenvalues_at(size), data.teacher_fields(B, size)
        return cls(Q, A, G, v, u, dimensions / size, omega, size, dimensions, W, B, means, own, latent)

    @classmethod
    @checked
    def from_overlaps(
        cls,
        problem: Problem,
        Q: ArrayLike,
        R: ArrayLike | None = None,
        T: ArrayLike | None = None,
        size: int | None = None,
        student_readout: ArrayLike | None = None,
        teacher_readout: ArrayLike | None = None,
        *,
        m: ArrayLike | None = None,
        teacher_m: ArrayLike | None = None,
    ) -> Start:
        """Start from overlaps alone, for macro and (with a `size`) meso.

        Parameters
        ----------
        Q, R, T: (K, K), (K, M), (M, M) for one level; otherwise one set per level, (levels, ...), with
            the normalisation of `Start`: they sum over levels to W Wᵀ/N. R and T where there is a teacher.
        size: number of input dimensions, needed by `sample`.
        m, teacher_m: overlaps of student and teacher with the means of a mixture, (K, P) and (M, P), or per level;
            zero where they are not given.

        On a `HiddenManifold` Q, R, T are the covariances of the fields, (K, K), (K, M) and (M, M), of weights drawn
        without regard to the features (see `HiddenManifold.typical`).
        """
        if problem.learns_rows:
            raise InputError("Q: a start on labelled rows has weights; use draw, or Start.from_weights")
        if problem.data.reads_latent:
            return cls._of_fields(problem, Q, R, T, size, student_readout, teacher_readout, (m, teacher_m))
        K, M, levels = problem.student.units, problem.teacher_units, problem.data.eigenvalues.size
        if M and (R is None or T is None):
            raise InputError("R, T: this problem has a teacher; give its overlaps R (K, M) and T (M, M)")
        gram = problem.data.mean_gram(problem.data.fractions)
        P = gram.shape[-1]
        shapes = {"Q": (K, K), "R": (K, M), "T": (M, M), "m": (K, P), "teacher_m": (M, P)}
        blocks: dict[str, Array] = {}
        for name, value in (("Q", Q), ("R", R), ("T", T), ("m", m), ("teacher_m", teacher_m)):
            if value is None:
                value = np.zeros((levels, *shapes[name]))
            value = array(name, value, None)
            if value.ndim == 2:
                if levels > 1:
                    raise InputError(
                        f"{name}: inputs have {levels} levels, so one matrix per level is needed: expected shape "
                        f"{(levels, *shapes[name])}, got {value.shape}"
                    )
                value = value[None]
            blocks[name] = array(name, value, (levels, *shapes[name]))
        for name in ("Q", "T"):
            skew = float(np.abs(blocks[name] - blocks[name].transpose(0, 2, 1)).max(initial=0.0))
            if skew > 1e-12 * max(1.0, float(np.abs(blocks[name]).max(initial=0.0))):
                raise InputError(f"{name}: expected symmetric matrices, they differ from their transpose by {skew:.3g}")
        A = np.concatenate([blocks["R"], blocks["m"]], axis=-1)
        G = joined(blocks["T"], blocks["teacher_m"], gram)
        low = np.linalg.eigvalsh(joined(blocks["Q"], A, G))[:, 0]
        worst = int(low.argmin())
        if low[worst] < -1e-10 * max(1.0, float(np.abs(G).max(initial=0.0))):
            names = ["Q", *(["R", "T"] if M else []), *(["m"] if P else [])]
            raise InputError(
                f"{', '.join(names)}: no weights have these overlaps: their matrix of level {worst} has the negative "
                f"eigenvalue {low[worst]:.3g}; reduce {' or '.join(n for n in names if n in 'Rm')}, or increase Q"
            )
        v, u = _readouts(problem, student_readout, teacher_readout)
        own = student_readout is not None or teacher_readout is not None
        data = problem.data
        start = cls(blocks["Q"], A, G, v, u, data.fractions, data.eigenvalues, own_readouts=own)
        return start if size is None else start.at_size(problem, size)

    @classmethod
    def _of_fields(
        cls,
        problem: Problem,
        Q: ArrayLike,
        R: ArrayLike | None,
        T: ArrayLike | None,
        size: int | None,
        student_readout: ArrayLike | None,
        teacher_readout: ArrayLike | None,
        means: tuple[ArrayLike | None, ArrayLike | None],
    ) -> Start:
        K, M = problem.student.units, problem.teacher_units
        data: Any = problem.data  # which reads a latent
        if size is not None or data.has_means or any(part is not None for part in means):
            raise InputError(
                "size: overlaps alone describe a hidden manifold of infinite size whose inputs have mean zero; for a "
                "size, or a mixture of latents, use draw or Start.from_weights"
            )
        if R is None or T is None:
            raise InputError("R, T: this problem has a teacher; give its covariances R (K, M) and T (M, M)")
        blocks = (array("Q", Q, (K, K)), array("R", R, (K, M)), array("T", T, (M, M)))
        low = float(np.linalg.eigvalsh(joined(*blocks))[0])
        if low < -1e-10 * max(1.0, float(np.abs(blocks[0]).max())):
            raise InputError(
                f"Q, R, T: no fields have these covariances: their matrix has the negative eigenvalue {low:.3g}; "
                "reduce R, or increase Q"
            )
        v, u = _readouts(problem, student_readout, teacher_readout)
        own = student_readout is not None or teacher_readout is not None
        latent = TeacherFields(blocks[2], np.zeros((M, 0)))
        Q_levels, A, G = data.typical(*blocks)
        return cls(Q_levels, A, G, v, u, data.fractions, data.eigenvalues, own_readouts=own, latent=latent)

    @checked
    def at_size(self, problem: Problem, size: int) -> Start:
        """The same overlaps at another size, without weights: what finite-size scaling starts from."""
        self.check_fits(problem)
        if self.latent is not None:
            raise InputError(
                "size: the features of a hidden manifold are others at another size, and so are the overlaps; draw a "
                "start at that size"
            )
        dimensions = problem.data.dimensions(size)
        ranks = np.linalg.matrix_rank(self.gram, tol=1e-9 * max(1.0, float(np.abs(self.gram).max())), hermitian=True)
        tight = np.flatnonzero(ranks > dimensions)
        if tight.size:
            b = int(tight[0])
            raise InputError(
                f"size: level {b} would have {dimensions[b]} dimensions but its overlaps need {ranks[b]}; "
                "use a larger size"
            )
        G, A, M = self.G.copy(), self.A.copy(), self.u.size
        if A.shape[2] > M:
            # means are shared out over the levels by their fractions, which are others at this size
            gram = problem.data.mean_gram(dimensions / size)
            before = np.trace(G[:, M:, M:], axis1=1, axis2=2)
            longer = np.sqrt(np.trace(gram, axis1=1, axis2=2) / np.where(before > 0, before, 1.0))[:, None, None]
            A[:, :, M:] *= longer
            G[:, :M, M:] *= longer
            G[:, M:, :M] *= longer
            G[:, M:, M:] = gram
        return replace(
            self,
            A=A,
            G=G,
            fractions=dimensions / size,
            size=int(size),
            dimensions=dimensions,
            student=None,
            teacher=None,
            means=None,
        )

    @property
    def gram(self) -> Array:
        """(Q, A; Aᵀ, G) per level, (levels, K+M+P, K+M+P)."""
        return joined(self.Q, self.A, self.G)

    @checked
    def check_fits(self, problem: Problem) -> None:
        """Refuse a start that was made for another problem, or one that is too large to begin with."""
        eigenvalues = problem.data.eigenvalues_at(self.size)
        wanted = (eigenvalues.size, problem.student.units, problem.teacher_units)
        if self.R.shape != wanted:
            raise InputError(
                f"start: has {self.R.shape[0]} levels, {self.R.shape[1]} student and {self.R.shape[2]} teacher units, "
                f"the problem has {wanted[0]}, {wanted[1]} and {wanted[2]}; draw the start for this problem"
            )
        if not np.allclose(self.eigenvalues, eigenvalues, rtol=1e-9, atol=0):
            raise InputError("start: was made for inputs of other eigenvalues; draw the start for this problem")
        gram, M = problem.data.mean_gram(self.fractions, self.size), self.u.size
        mine = self.G[:, M:, M:]
        if mine.shape != gram.shape or not np.allclose(mine, gram, atol=1e-9 * max(1.0, np.abs(gram).max(initial=0.0))):
            raise InputError("start: was made for inputs of other means; draw the start for this problem")
        if self.means is not None and self.size is not None:
            vectors = problem.data.mean_vectors(self.size)
            if not np.allclose(self.means, vectors, atol=1e-9 * max(1.0, np.abs(vectors).max(initial=0.0))):
                raise InputError("start: was made for other mean vectors; draw the start for this problem")
        expected = problem.data.fractions if self.size is None else problem.data.dimensions(self.size) / self.size
        if not np.allclose(self.fractions, expected, atol=1e-12):
            raise InputError("start: was made for other fractions of the levels; draw the start for this problem")
        if self.latent is not None and self.student is not None and self.teacher is not None:
            # features of other seeds may have the same eigenvalues
            data, N = problem.data, self.student.shape[1]
            rows = data.turned(data.teacher_rows(self.teacher, N))
            A = block_overlaps(data.turned(self.student), rows, data.dimensions(N))[1]
            if not np.allclose(A, self.R, atol=1e-9 * max(1.0, np.abs(A).max(initial=0.0))):
                raise InputError("start: was made for other features; draw the start for this problem")
        if not self.own_readouts:
            for name, mine, theirs in (
                ("student", self.v, problem.student.readouts),
                ("teacher", self.u, problem.teacher_readouts),
            ):
                if not np.array_equal(mine, theirs):
                    raise InputError(
                        f"start: was made for another {name} readout; draw the start for this problem, or give "
                        f"{name}_readout= when making it"
                    )
        # of a teacher that rows bring with them, directions without variance count for nothing
        G = self.eigenvalues[:, None, None] * self.G if problem.learns_rows else self.G
        largest = max(float(np.abs(x).max(initial=0.0)) for x in (self.Q, G, self.v))
        if largest >= LIMIT:
            raise InputError(f"start: an overlap or readout of {largest:.3g} counts as diverged; use a smaller scale")

    def _repr_html_(self) -> str:
        from ..plot.notebook import card

        overlaps = np.concatenate([x.sum(0) for x in (self.Q, self.A)], axis=1)
        K = len(overlaps)

        def draw(ax: Any) -> None:
            shown = ax.imshow(overlaps, cmap="viridis", aspect="auto")
            ax.figure.colorbar(shown, ax=ax)
            ax.axvline(K - 0.5, color="w", lw=2)
            for axis in (ax.xaxis, ax.yaxis):
                axis.get_major_locator().set_params(integer=True)
            ax.set(xlabel="students | teachers and means", ylabel="student", title="overlaps, summed over levels")

        return card(repr(self), draw if overlaps.size > 1 else None, describe="overlaps of the students as a map")

    def __repr__(self) -> str:
        levels, K, M = self.R.shape
        what = "overlaps only" if self.student is None else "weights and overlaps"
        size = "infinite size" if self.size is None else f"N = {self.size}"
        fixed = f"M = {M}, " * (M > 0) + _means(self.m.shape[2])
        return f"Start({what}: K = {K}, {fixed}{levels} level{'s' * (levels > 1)}, {size})"


def _means(count: int) -> str:
    return f"{count} mean{'s' * (count > 1)}, " * (count > 0)


def check(problem: Problem, start: Start) -> None:
    """Refuse a problem and a start that do not belong together, before anything is computed."""
    if not isinstance(problem, Problem):
        raise InputError(f"problem: expected an overlaps.Problem, got {shown(problem)}")
    if not isinstance(start, Start):
        raise InputError(f"start: expected an overlaps.Start (from draw or Start.from_...), got {shown(start)}")
    start.check_fits(problem)


@checked
def draw(problem: Problem, size: int, seed: int = 0, scale: float = 1.0) -> Start:
    """Random weights: the teacher's standard normal, the student's with standard deviation `scale`."""
    size = whole("size", size, least=1)
    scale = number("scale", scale, least=0)
    if scale > LARGEST_SCALE:
        raise InputError(f"scale: weights of {scale:.1e} overflow when squared; use one of order 1")
    problem.data.dimensions(size)
    count = problem.data.components.weights.size if problem.data.has_means else 0
    weights = size * (problem.student.units + problem.teacher_units + count)
    if weights > 2e10:
        raise InputError(
            f"size: {size} inputs need {weights * 8e-9:.0f} GB of weights; macro and meso run from overlaps alone, see "
            "Start.from_overlaps"
        )
    rng = np.random.default_rng(whole("seed", seed, least=0))
    teacher = None
    if problem.row_teacher is None:
        teacher = rng.standard_normal((problem.teacher_units, problem.data.teacher_size(size)))
    student = scale * rng.standard_normal((problem.student.units, size))
    return Start.from_weights(problem, student=student, teacher=teacher)


def fixed_rows(B: Array, means: Array) -> Array:
    """Fixed directions as rows of the length of weights: teachers B (M, N), and means (P, N) times √N."""
    return np.concatenate([B, np.sqrt(B.shape[1]) * means]) if len(means) else B


def block_overlaps(W: Array, fixed: Array, dimensions: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Q, A, G per level from weights (K, N) and fixed directions (M+P, N)."""
    rows = np.concatenate([W, fixed])
    K, size = W.shape
    edges = np.concatenate([[0], np.cumsum(dimensions)])
    if dimensions.size == 1:
        gram = (rows @ rows.T / size)[None]
    else:
        gram = np.empty((dimensions.size, len(rows), len(rows)))
        for i, row in enumerate(rows):
            gram[:, i] = np.add.reduceat(row * rows, edges[:-1], axis=1).T / size
    return gram[:, :K, :K].copy(), gram[:, :K, K:].copy(), gram[:, K:, K:].copy()


def joined(Q: Array, R: Array, T: Array) -> Array:
    """(Q, R; Rᵀ, T), (..., K+M, K+M), from Q (..., K, K), R (..., K, M) and T (..., M, M) or (M, M)."""
    T = np.broadcast_to(T, (*Q.shape[:-2], *T.shape[-2:]))
    upper = np.concatenate([Q, R], axis=-1)
    lower = np.concatenate([np.swapaxes(R, -1, -2), T], axis=-1)
    return np.concatenate([upper, lower], axis=-2)


def _readouts(problem: Problem, student: ArrayLike | None, teacher: ArrayLike | None) -> tuple[Array, Array]:
    pairs = (
        ("student_readout", student, problem.student.readouts),
        ("teacher_readout", teacher, problem.teacher_readouts),
    )
    v, u = (own if given is None else array(name, given, own.shape) for name, given, own in pairs)
    return v, u
