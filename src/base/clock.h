/* clock.h - time. */
#pragma once

/* Now, "2026-12-01T04:20:11.123Z". Returns text. */
enum { CLOCK_TEXT = 32 };
const char *clock_utc(char text[CLOCK_TEXT]);

double clock_s(void); /* monotonic seconds since an arbitrary start */
