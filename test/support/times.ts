/** Factor for the number of random attempts in tests, such as `PINFOLD_TEST_TIMES=10`. */
export const times = Number(process.env.PINFOLD_TEST_TIMES ?? 1)

/**
 * Options of a server whose minute takes ten minutes. On a slow machine, rate limits stay used up during a test, and waits still
 * end.
 */
export const noMinutePasses = { monotonic: () => performance.now() / 10 }
