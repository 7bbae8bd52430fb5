"""Functions of complex numbers, exact over the whole plane: no part overflows before the result.

The parts of acos, asin, acosh and asinh come from one kernel (Hull, Fairgrieve and Tang,
"Implementing the complex arcsine and arccosine functions using exception handling"); logarithms
near the unit circle from sums with their rounding errors (Dekker, Moller).
"""

from __future__ import annotations

import math

from mlirhlo.rewrites.chlo_expansion.emitter import Value
from mlirhlo.rewrites.chlo_expansion.limits import finfo, largest, narrow, scaled, smallest


def parts(z: Value) -> tuple[Value, Value]:
    """Real and imaginary part."""
    return z.real(), z.imag()


def exponential(z: Value) -> Value:
    """E**z; a factor that overflows is taken in two halves."""
    x, y = parts(z)
    e, half = x.exponential(), (x * 0.5).exponential()
    overflows = e.compare("EQ", math.inf)
    cosine, sine = y.cosine(), y.sine()
    real = overflows.select(half * cosine * half, e * cosine)
    imag = overflows.select(half * sine * half, e * sine)
    return z.emitter.complex(real, y.compare("EQ", 0.0).select(0.0, imag))


def _two_sum_error(total: Value, a: Value, b: Value) -> Value:
    """What rounding took from a + b, for any sizes."""
    shadow = total - a
    return (a - (total - shadow)) + (b - shadow)


def _fast_two_sum_error(total: Value, a: Value, b: Value) -> Value:
    """What rounding took from a + b where |a| >= |b|."""
    return b - (total - a)


def _square_error(x: Value, square: Value) -> Value:
    """What rounding took from x * x, by splitting x into halves of its digits."""
    digits = int(finfo(x).nmant) + 1
    split = x * float((1 << (digits - digits // 2)) + 1)
    high = split + (x - split)
    low = x - high
    cross = high * low
    return (-square + high * high) + cross + cross + low * low


def log(z: Value) -> Value:
    """Log |z| and the angle; near |z| = 1 by log1p of x² + y² - 1 with its rounding errors."""
    x, y = parts(z)
    xx, yy = x * x, y * y
    y_larger = yy.compare("GT", xx)
    more, less = y_larger.select(yy, xx), y_larger.select(xx, yy)
    s1 = more + -1.0
    s2 = s1 + less
    ey, ex = _square_error(y, yy), _square_error(x, xx)
    s3 = s2 + ey
    s4 = s3 + ex
    errors = (more - (s1 - -1.0)) + _fast_two_sum_error(s2, s1, less)
    errors = errors + _fast_two_sum_error(s3, s2, ey)
    errors = errors + _fast_two_sum_error(s4, s3, ex)
    near = s4 + errors
    size_x, size_y = x.abs(), y.abs()
    high, low = size_x.maximum(size_y), size_x.minimum(size_y)
    ratio = low.compare("EQ", high).select(1.0, low / high)
    far = high.log() + (ratio * ratio).log_plus_one() * 0.5
    real = near.abs().compare("LT", 0.5).select(near.log_plus_one() * 0.5, far)
    return z.emitter.complex(real, y.atan2(x))


def log_plus_one(z: Value) -> Value:
    """Log(1 + z), exact near z = 0 and on the circle |1 + z| = 1."""
    x, y = parts(z)
    size_x, size_y = x.abs(), y.abs()
    high, low = size_x.maximum(size_y), size_x.minimum(size_y)
    ratio = low / high
    square = low.compare("EQ", high).select(1.0, ratio * ratio)
    huge = high.log() + square.log_plus_one() * 0.5
    plus_one = x + 1.0
    yy, xx = y * y, x * x
    direct = (plus_one * plus_one + yy).log() * 0.5
    twice = x + x
    ey, ex = _square_error(y, yy), _square_error(x, xx)
    s1 = twice + yy
    s2 = s1 + xx
    s3 = s2 + ey
    s4 = s3 + ex
    errors = _two_sum_error(s1, twice, yy) + _two_sum_error(s2, s1, xx)
    errors = errors + _two_sum_error(s3, s2, ey)
    errors = errors + _two_sum_error(s4, s3, ex)
    exact = (s4 + errors).log_plus_one() * 0.5
    near = (plus_one.abs() + size_y).compare("LT", 0.2).select(direct, exact)
    real = high.compare("GT", scaled(x, math.sqrt(largest(x)), 0.01)).select(huge, near)
    return z.emitter.complex(real, y.atan2(plus_one))


def sqrt(z: Value) -> Value:
    """Half the angle, the root of the size; sizes that over- or underflow are scaled."""
    x, y = parts(z)
    size_x, size_y = x.abs(), y.abs()
    equal = size_x.compare("EQ", size_y)
    root_x, root_y = size_x.sqrt(), size_y.sqrt()
    root_2 = math.sqrt(2.0)
    # sqrt((|z| + |x|) / 2), which is all there is unless |z| leaves the range of the type.
    plain = (_hypot(size_x, size_y) / 2.0 + size_x / 2.0).sqrt()
    failed = plain.compare("EQ", 0.0) | plain.compare("EQ", math.inf)
    x_larger, y_larger = size_x.compare("GT", size_y), size_x.compare("LT", size_y)
    ratio = equal.select(1.0, y_larger.select(size_x / size_y, size_y / size_x))
    length = _hypot(ratio.abs(), x.emitter.like(1.0, x))
    by_x, by_y = (length + 1.0).sqrt(), (ratio + length).sqrt()
    scaled_sum = x_larger.select(root_x * (by_x / root_2), root_y * (by_y / root_2))
    diagonal = root_x * math.sqrt(1.0 + root_2) / root_2
    big = equal.select(diagonal, failed.select(scaled_sum, plain))
    root_ratio = equal.select(1.0, y_larger.select(root_x / root_y, root_y / root_x))
    scaled_part = x_larger.select(root_y * root_ratio / (by_x * root_2), root_y / (by_y * root_2))
    small = equal.select(
        root_y / (math.sqrt(1.0 + root_2) * root_2),
        failed.select(scaled_part, size_y / (plain * 2.0)),
    )
    real = x.compare("GE", 0.0).select(big, small)
    below = y.compare("LT", 0.0)
    imag = x.compare("LT", 0.0).select(below.select(-big, big), below.select(-small, small))
    return z.emitter.complex(real, imag)


def square(z: Value) -> Value:
    """(x + y)(x - y) + 2xy i."""
    x, y = parts(z)
    equal = x.is_finite() & x.abs().compare("EQ", y.abs())
    real = equal.select(0.0, (x - y) * (x + y))
    return z.emitter.complex(real, x * y * 2.0)


def _hypot(a: Value, b: Value) -> Value:
    """Sqrt(a² + b²) of numbers that are not negative."""
    high, low = a.maximum(b), a.minimum(b)
    ratio = low / high
    rr = ratio * ratio
    root = (rr + 1.0).sqrt()
    tiny = root.compare("EQ", 1.0) & rr.compare("GT", 0.0)
    general = tiny.select(high + high * rr / 2.0, high * root)
    return high.compare("EQ", low).select(high * math.sqrt(2.0), general)


class _Arc:
    """What acos, asin, acosh and asinh share, of |x| and |y|."""

    def __init__(self, x: Value, y: Value) -> None:
        size_x, size_y = x.abs(), y.abs()
        safe_max = narrow(x, math.sqrt(largest(x)) / 8.0)
        safe_min = math.sqrt(smallest(x)) * 4.0
        plus, minus = size_x + 1.0, size_x - 1.0
        r, s = _hypot(plus.abs(), size_y), _hypot(minus.abs(), size_y)
        a = (r + s) * 0.5
        yy = size_y * size_y
        half_yy = yy * 0.5
        near_one = r + plus
        far, inside = s + minus, s - minus
        # The angle's other leg: sqrt of (a + |x|) (a - |x|), the difference by its exact form.
        half_apx = (a + size_x) * 0.5
        leg_inside = (half_apx * (yy / near_one + inside)).sqrt()
        leg_outside = size_y * (half_apx / near_one + half_apx / far).sqrt()
        leg = size_x.compare("LE", 1.0).select(leg_inside, leg_outside)
        huge = size_x.maximum(size_y).compare("GE", safe_max)
        self.leg = huge.select(size_y, leg)
        # The logarithm: log1p(a - 1 + sqrt((a - 1) (a + 1))), a - 1 by its exact forms.
        x_huge = size_x.compare("LT", scaled(x, safe_max, 1e12))
        limit = x_huge.select(
            x.emitter.like(scaled(x, safe_max, 1e-6), x), scaled(x, safe_max, 100.0)
        )
        y_huge = size_y.compare("GE", limit)
        larger = y_huge.select(size_y, size_x)
        bound = y_huge.select(limit, safe_max)
        ratio = (y_huge & ~size_y.compare("EQ", math.inf)).select(size_x / size_y, 0.0)
        log_huge = larger.log() + math.log(2.0) + (ratio * ratio).log_plus_one() * 0.5
        on_cut = size_y.compare("LT", safe_min) & size_x.compare("LT", 1.0)
        above = a + 1.0
        cut = -(plus * minus / above)
        outer = half_yy / near_one + far * 0.5
        inner = half_yy / near_one + half_yy / inside
        small = a.compare("LE", 1.5).select(inner, a - 1.0)
        excess = on_cut.select(cut, size_x.compare("GE", 1.0).select(outer, small))
        root = (excess * above).sqrt()
        log_near = on_cut.select(size_y / root, (excess + root).log_plus_one())
        self.log = larger.compare("GE", bound).select(log_huge, log_near)


def asin_acos_kernel(z: Value) -> Value:
    """The leg and the logarithm, as a complex number."""
    arc = _Arc(*parts(z))
    return z.emitter.complex(arc.leg, arc.log)


def asin(z: Value) -> Value:
    """Angle of (leg, x), and the logarithm with the sign of y."""
    x, y = parts(z)
    arc = _Arc(x, y)
    imag = y.compare("LT", 0.0).select(-arc.log, arc.log)
    return z.emitter.complex(x.atan2(arc.leg), imag)


def acos(z: Value) -> Value:
    """Angle of (x, leg), and the logarithm with the opposite sign of y."""
    x, y = parts(z)
    arc = _Arc(x, y)
    imag = y.compare("LT", 0.0).select(arc.log, -arc.log)
    return z.emitter.complex(arc.leg.atan2(x), imag)


def acosh(z: Value) -> Value:
    """I acos(z) where y >= 0, else -i acos(z)."""
    x, y = parts(z)
    arc = _Arc(x, y)
    angle = arc.leg.atan2(x)
    return z.emitter.complex(arc.log, y.compare("LT", 0.0).select(-angle, angle))


def asinh(z: Value) -> Value:
    """-i asin(i z)."""
    x, y = parts(z)
    arc = _Arc(-y, x)
    real = x.compare("LT", 0.0).select(-arc.log, arc.log)
    return z.emitter.complex(real, y.atan2(arc.leg))


def _atanh_parts(x: Value, y: Value) -> tuple[Value, Value]:
    """Log1p(4|x| / ((1 - |x|)² + y²)) / 4 with x's sign, and the angle of (2y, 1 - x² - y²) / 2."""
    digits = int(finfo(x).nmant) + 1
    # Beyond this, both squares are too large for the sum to matter.
    twice = float((1 << digits) + 2)
    large = scaled(x, twice, twice)
    size_x, size_y = x.abs(), y.abs()
    in_range = size_x.compare("LT", large) & size_y.compare("LT", large)
    minus = 1.0 - size_x
    yy = y * y
    near = size_x / (minus * minus + yy)
    much_larger = (size_y * twice).compare("LT", size_x)
    infinite = (x.compare("EQ", math.inf) | x.compare("EQ", -math.inf)) | (
        y.compare("EQ", math.inf) | y.compare("EQ", -math.inf)
    )
    far = infinite.select(0.0, 1.0 / (size_x / y + y / size_x) / y)
    ratio = in_range.select(near, much_larger.select(1.0 / size_x, far))
    like = x.emitter.like
    sign = x.compare("GE", 0.0).select(like(1.0, x), -1.0)
    real = sign * (ratio * 4.0).log_plus_one() * 0.25
    angle = (y + y).atan2(minus * (size_x + 1.0) - yy)
    side = y.compare("GE", 0.0).select(like(1.0, x), -1.0)
    imag = in_range.select(angle, side * math.pi) * 0.5
    return real, imag


def atanh(z: Value) -> Value:
    """(log1p(z) - log1p(-z)) / 2."""
    return z.emitter.complex(*_atanh_parts(*parts(z)))


def atan(z: Value) -> Value:
    """-i atanh(i z)."""
    x, y = parts(z)
    real, imag = _atanh_parts(-y, x)
    return z.emitter.complex(imag, -real)


def cosh(z: Value) -> Value:
    """E**(z + log 1/2) + e**(log 1/2 - z)."""
    half = log(z.emitter.constant(0.5, z.type))
    return exponential(z + half) + exponential(half - z)


def sinh(z: Value) -> Value:
    """E**(z + log 1/2) - e**(log 1/2 - z)."""
    half = log(z.emitter.constant(0.5, z.type))
    return exponential(z + half) - exponential(half - z)
