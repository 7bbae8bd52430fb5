"""LAPACK's routines, one by one: what they are given, and the memory they work in (see `lapack.py`)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from math import prod

from xdsl.ir import SSAValue

from mlirhlo.lowering.hlo_to_loops import lapack_small as small
from mlirhlo.lowering.hlo_to_loops.lapack import Call, routine
from mlirhlo.lowering.hlo_to_loops.places import Coordinate

BLOCK = 64
"""Columns that routines work on at once, where a larger workspace lets them."""

# ---------------------------------------------------------------- factors


@routine
def _potrf(c: Call) -> None:
    """Cholesky's factor over one triangle; info."""
    n, _ = c.size(0)
    with c.each(("x", n * n), ("i", 1)) as (a, info):
        c.read(0, a)
        # It has a sixth of them; the library's takes long.
        if small.is_small(c, n**3 // 8):
            small.potrf(c, n, a, info)
        else:
            c.call("potrf", c.triangle, n, a, n, info)
        c.write(1, a)
        c.write_vector(2, info)


@routine
def _getrf(c: Call) -> None:
    """LU factors, pivots from 1 on, info."""
    m, n = c.size(0)
    with c.each(("x", m * n), ("i", min(m, n)), ("i", 1)) as (a, pivots, info):
        c.read(0, a)
        if small.is_small(c, m * n * min(m, n)):
            small.getrf(c, m, n, a, pivots, info)
        else:
            c.call("getrf", m, n, a, m, pivots, info)
        c.write(1, a)
        c.write_vector(2, pivots)
        c.write_vector(3, info)


@routine
def _geqrf(c: Call) -> None:
    """R and reflectors, tau."""
    m, n = c.size(0)
    room = n * BLOCK
    with c.each(("x", m * n), ("x", min(m, n)), ("x", room), ("i", 1)) as (a, tau, work, info):
        c.read(0, a)
        c.call("geqrf", m, n, a, m, tau, work, room, info)
        c.write(1, a)
        c.write_vector(2, tau)


@routine
def _geqp3(c: Call) -> None:
    """R and reflectors, pivots from 1 on, tau."""
    m, n = c.size(0)
    room = 2 * n + (n + 1) * BLOCK
    rooms = (("x", m * n), ("i", n), ("x", min(m, n)), ("x", room), ("r", 2 * n), ("i", 1))
    with c.each(*rooms) as (a, pivots, tau, work, real, info):
        c.read(0, a)
        c.read_vector(1, pivots)
        more = (real,) if c.is_complex else ()
        c.call("geqp3", m, n, a, m, pivots, tau, work, room, *more, info)
        c.write(2, a)
        c.write_vector(3, pivots)
        c.write_vector(4, tau)


@routine
def _orgqr(c: Call) -> None:
    """The product of the reflectors."""
    m, n = c.size(0)
    count = c.k.shape(1).dimensions[-1]
    c.require(count <= n <= m)
    room = n * BLOCK
    with c.each(("x", m * n), ("x", count), ("x", room), ("i", 1)) as (a, tau, work, info):
        c.read(0, a)
        c.read_vector(1, tau)
        c.call("orgqr", m, n, count, a, m, tau, work, room, info)
        c.write(2, a)


@routine
def _ormqr(c: Call) -> None:
    """The product of the reflectors, or its adjoint, times a matrix."""
    order, count = c.size(0)[0], c.k.shape(1).dimensions[-1]
    m, n = c.size(2)
    left = bool(c.options.get("left", True))
    c.require(order == (m if left else n) and count <= min(c.size(0)))
    turned = ("C" if c.is_complex else "T") if c.options.get("transpose", False) else "N"
    room = max(m, n) * BLOCK + 65 * 64
    rooms = (("x", prod(c.size(0))), ("x", count), ("x", m * n), ("x", room), ("i", 1))
    with c.each(*rooms) as (a, tau, given, work, info):
        c.read(0, a)
        c.read_vector(1, tau)
        c.read(2, given)
        side = "L" if left else "R"
        c.call("ormqr", side, turned, m, n, count, a, order, tau, given, m, work, room, info)
        c.write(3, given)


@routine
def _gehrd(c: Call) -> None:
    """Hessenberg form and reflectors, tau, info."""
    n, _ = c.size(0)
    low, high = c.number_of("low", 1), c.number_of("high", n)
    c.require(1 <= low <= high <= n)
    room = n * BLOCK + 65 * 64
    with c.each(("x", n * n), ("x", n), ("x", room), ("i", 1)) as (a, tau, work, info):
        c.read(0, a)
        c.call("gehrd", n, low, high, a, n, tau, work, room, info)
        c.write(1, a)
        c.write_vector(2, tau)
        c.write_vector(3, info)


@routine
def _sytrd(c: Call) -> None:
    """Factored matrix, diagonal, off-diagonal, tau, info."""
    n, _ = c.size(0)
    room = n * BLOCK
    rooms = (("x", n * n), ("r", n), ("r", n), ("x", n), ("x", room), ("i", 1))
    with c.each(*rooms) as (a, diagonal, beside, tau, work, info):
        c.read(0, a)
        c.call("sytrd", c.triangle, n, a, n, diagonal, beside, tau, work, room, info)
        for number, made in enumerate((diagonal, beside, tau, info), 2):
            c.write_vector(number, made)
        c.write(1, a)


# ---------------------------------------------------------------- equations


@routine
def _trsm(c: Call) -> None:
    """x with op(a) x = b or x op(a) = b."""
    order, (m, n) = c.size(0)[0], c.size(1)
    side = c.letter_of("side", "LR")
    c.require(order == (m if side == "L" else n))
    with c.each(("x", order * order), ("x", m * n)) as (a, x):
        c.read(0, a)
        c.read(1, x)
        letters = (side, c.triangle, c.letter_of("trans_x", "NTC"), c.letter_of("diag", "NU"))
        if small.is_small(c, order * m * n):
            small.trsm(c, letters, m, n, a, x)
        else:
            c.call("trsm", *letters, m, n, 1.0, a, order, x, m)
        c.write(2, x)


@routine
def _gtsv(c: Call) -> None:
    """The diagonals of U, the solution, info. The first of `dl` and the last of `du` are not read."""
    m, n = c.size(3)
    rooms = (("x", m), ("x", m), ("x", m), ("x", m * n), ("i", 1))
    with c.each(*rooms) as (below, diagonal, above, x, info):
        zero = c.b.constant(0.0, c.real)
        for part in range(c.parts):
            c.b.store(zero, below, [(m - 1) * c.parts + part])
        c.read_vector(0, below, 1)
        c.read_vector(1, diagonal)
        c.read_vector(2, above)
        c.read(3, x)
        c.call("gtsv", m, n, below, diagonal, above, x, m, info)
        # What is left there is no part of U.
        for vector, last in ((above, m - 1), (below, max(m - 2, 0))):
            for part in range(c.parts):
                c.b.store(zero, vector, [last * c.parts + part])
        for number, made in enumerate((below, diagonal, above), 4):
            c.write_vector(number, made)
        c.write(7, x)
        c.write_vector(8, info)


# ---------------------------------------------------------------- eigenvalues, singular values


@routine
def _syevd(c: Call) -> None:
    """Eigenvectors, ascending eigenvalues, info; from one triangle."""
    n, _ = c.size(0)
    room, integers = 2 * n * n + 6 * n + 1 + n * BLOCK, 5 * n + 3
    reals = 2 * n * n + 5 * n + 1
    rooms = (("x", n * n), ("r", n), ("x", room), ("r", reals), ("i", integers), ("i", 1))
    with c.each(*rooms) as (a, values, work, real, whole, info):
        c.read(0, a)
        with c.sound(a, n * n, info, 1):
            more = (real, reals) if c.is_complex else ()
            arguments = (n, a, n, values, work, room, *more, whole, integers, info)
            c.call("syevd", "V", c.triangle, *arguments)
        c.write(1, a)
        c.write_vector(2, values)
        c.write_vector(3, info)


@routine
def _gesdd(c: Call) -> None:
    """The operand as it was, singular values, u, adjoint of v, info."""
    m, n = c.size(0)
    least, most = min(m, n), max(m, n)
    mode = c.letter_of("mode", "ASN")
    if "compute_uv" in c.options:
        mode = "A" if c.options.get("full_matrices") else "S"
        mode = mode if c.options["compute_uv"] else "N"
    # Which of the results is u.
    left, right = (4, 3) if c.options.get("transposed") else (3, 4)
    thin = ((m, least), (least, n))
    shapes = (c.size(left), c.size(right))
    c.require(shapes == thin if mode == "S" else shapes in (((m, m), (n, n)), thin))
    c.require(mode != "A" or shapes == ((m, m), (n, n)))
    room = 4 * least * least + 8 * least + 2 * most + (m + n) * BLOCK
    reals = least * max(5 * least + 7, 2 * most + 2 * least + 1)
    u_size, v_size = prod(c.size(left)), prod(c.size(right))
    rooms = (("x", m * n), ("r", least), ("x", u_size), ("x", v_size))
    spare = (("x", room), ("r", reals), ("i", 8 * least), ("i", 1))
    with c.each(*rooms, *spare) as (a, values, u, v, work, real, whole, info):
        c.read(0, a)
        c.write(1, a)
        for matrix, size in ((u, u_size), (v, v_size)):
            with c.b.loop(0, size * c.parts) as i:
                c.b.store(c.b.constant(0.0, c.real), matrix, [i])
        with c.sound(a, m * n, info, -4):
            more = (real,) if c.is_complex else ()
            vectors = (u, c.size(left)[0], v, c.size(right)[0])
            c.call("gesdd", mode, m, n, a, m, values, *vectors, work, room, *more, whole, info)
        c.write_vector(2, values)
        c.write(left, u)
        c.write(right, v)
        c.write_vector(5, info)


@routine
def _geev(c: Call) -> None:
    """Eigenvalues (of real matrices real and imaginary parts), left and right eigenvectors, info."""
    with _eigen(c) as (values, imaginary, left, right, info):
        both = (values,) if c.is_complex else (values, imaginary)
        for number, made in enumerate(both, 1):
            c.write_vector(number, made)
        for number, vectors in enumerate((left, right), 1 + len(both)):
            if c.is_complex:
                c.write(number, vectors)
            else:
                _write_pairs(c, number, vectors, imaginary)
        c.write_vector(3 + len(both), info)


@routine
def _geev_packed(c: Call) -> None:
    """The operand, eigenvalues, left and right eigenvectors, info; of real matrices a pair of conjugate
    vectors is its real part and its imaginary part."""
    n, _ = c.size(0)
    with _eigen(c, original=1) as (values, imaginary, left, right, info):
        with c.b.loop(0, n) as i:
            parts = [c.b.load(values, [c.b.add(c.b.mul(i, c.parts), p)]) for p in range(c.parts)]
            if not c.is_complex:
                parts.append(c.b.load(imaginary, [i]))
            c.k.write(2, [*c.place, Coordinate(i)], tuple(parts))
        c.write(3, left)
        c.write(4, right)
        c.write_vector(5, info)


@contextmanager
def _eigen(c: Call, original: int | None = None) -> Generator[tuple[SSAValue, ...]]:
    """Memory with eigenvalues (of real matrices their imaginary parts in the second), left and right
    eigenvectors as LAPACK gives them, info. `original`: the result that is the operand."""
    n, _ = c.size(0)
    jobs = [
        ("V" if c.options[side] else "N") if side in c.options else c.letter_of(key, "NV")
        for side, key in (("left", "compute_left"), ("right", "compute_right"))
    ]
    room = n * (BLOCK + 4)
    kind = "x" if c.is_complex else "r"
    rooms = (("x", n * n), (kind, n), ("r", n), ("x", n * n), ("x", n * n))
    spare = (("x", room), ("r", 2 * n), ("i", 1))
    with c.each(*rooms, *spare) as (a, values, imaginary, left, right, work, real, info):
        c.read(0, a)
        if original is not None:
            c.write(original, a)
        for vectors in (left, right):
            with c.b.loop(0, n * n * c.parts) as i:
                c.b.store(c.b.constant(0.0, c.real), vectors, [i])
        with c.sound(a, n * n, info, -4):
            both = (values,) if c.is_complex else (values, imaginary)
            more = (real,) if c.is_complex else ()
            c.call("geev", *jobs, n, a, n, *both, left, n, right, n, work, room, *more, info)
        yield values, imaginary, left, right, info


def _write_pairs(c: Call, number: int, vectors: SSAValue, imaginary: SSAValue) -> None:
    """Eigenvectors of a real matrix: real and imaginary part of a pair are neighbours."""
    b, (n, _) = c.b, c.size(number)
    zero = b.constant(0.0, c.real)
    with b.loop(0, n) as j, b.loop(0, n) as i:
        value = b.load(imaginary, [j])
        first, second = b.cmpf("ogt", value, zero), b.cmpf("olt", value, zero)
        one, none = b.index(1), b.index(0)
        before = b.sub(j, b.select(second, one, none))
        after = b.add(j, b.select(first, one, none))
        real = b.load(vectors, [b.add(b.mul(before, n), i)])
        other = b.load(vectors, [b.add(b.mul(after, n), i)])
        other = b.select(second, b.negf(other), b.select(first, other, zero))
        c.k.write(number, [*c.place, Coordinate(i), Coordinate(j)], (real, other))


@routine
def _gees(c: Call) -> None:
    """Schur form, Schur vectors, eigenvalues (of real matrices two parts), number selected, info."""
    n, _ = c.size(0)
    room = n * (BLOCK + 3)
    kind = "x" if c.is_complex else "r"
    rooms = (("x", n * n), ("x", n * n), (kind, n), ("r", n))
    spare = (("x", room), ("r", n), ("i", n), ("i", 1), ("i", 1))
    with c.each(*rooms, *spare) as (a, q, values, imaginary, work, real, chosen, count, info):
        c.read(0, a)
        with c.sound(a, n * n, info, 1):
            both = (values,) if c.is_complex else (values, imaginary)
            more = (real,) if c.is_complex else ()
            # Nothing is sorted, so that the function that would choose is never called.
            arguments = (n, a, n, count, *both, q, n, work, room, *more, chosen, info)
            c.call("gees", "V", "N", chosen, *arguments)
        c.write(1, a)
        c.write(2, q)
        for number, made in enumerate((*both, count, info), 3):
            c.write_vector(number, made)
