/* vexp is exp to 1.1 ulp, flushes nothing that is a normal number, and keeps NaN and the limits;
 * vexp_low has the same bits where it may be used. */
// TEST ranks=1 timeout=30
#include "kernels/cpu/vexp.h"
#include "test.h"

#include <math.h>

/* |vexp(x) - exp(x)| in units of the last place of an F32 of that size. */
static double error_ulp(float x)
{
    const double want = exp((double)x);
    int exponent;
    frexp(want, &exponent);
    const double ulp = ldexp(1.0, exponent - 24 > -149 ? exponent - 24 : -149);
    return fabs((double)vexp(x) - want) / ulp;
}

int main(void)
{
    double worst = 0.0;
    float at = 0.0f;
    for (double x = -87.3; x < 88.7228; x += 1.7e-4) {
        const double e = error_ulp((float)x);
        if (e > worst) worst = e, at = (float)x;
    }
    for (double x = -1e3; x < -87.34; x += 1e-3)
        EXPECT(vexp((float)x) == 0.0f, "exp(%g) is %.9g", x, (double)vexp((float)x));
    for (double x = -100.0; x < 88.0; x += 0.013)
        EXPECT(vexp_low((float)x) == vexp((float)x), "not the same at %.9g", x);
    for (double x = 1e-30; x < 1.0; x *= 1.001) {
        worst = fmax(worst, error_ulp((float)x));
        worst = fmax(worst, error_ulp((float)-x));
    }
    EXPECT(worst <= 1.1, "%.3f ulp at %.9g", worst, (double)at);

    EXPECT(vexp(0.0f) == 1.0f, "exp(0) is %.9g", (double)vexp(0.0f));
    EXPECT(vexp(-INFINITY) == 0.0f, "exp(-Inf) is %.9g", (double)vexp(-INFINITY));
    EXPECT(vexp(-1e30f) == 0.0f, "exp(-1e30) is %.9g", (double)vexp(-1e30f));
    EXPECT(vexp(88.72f) < INFINITY, "exp(88.72) is %.9g", (double)vexp(88.72f));
    EXPECT(isinf(vexp(88.73f)), "exp(88.73) is %.9g", (double)vexp(88.73f));
    EXPECT(isinf(vexp(INFINITY)), "exp(Inf) is %.9g", (double)vexp(INFINITY));
    EXPECT(isinf(vexp(88.72284f)), "exp(88.72284) is %.9g", (double)vexp(88.72284f));
    EXPECT(isnan(vexp(NAN)), "exp(NaN) is %.9g", (double)vexp(NAN));
    EXPECT(isnan(vexp_low(NAN)), "exp(NaN) is %.9g", (double)vexp_low(NAN));
    EXPECT(vexp_low(-INFINITY) == 0.0f, "exp(-Inf) is %.9g", (double)vexp_low(-INFINITY));
    return test_end();
}
