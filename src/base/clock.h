/* clock.h - time. */
#pragma once

double clock_s(void); /* monotonic seconds since an arbitrary start */
