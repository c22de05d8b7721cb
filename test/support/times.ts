/** Factor for the number of random attempts in tests: `PINFOLD_TEST_TIMES=10`. */
export const times = Number(process.env.PINFOLD_TEST_TIMES ?? 1)

/** Options of a server whose minute takes ten: its rate limits stay used up on a slow machine, and its waits still end. */
export const noMinutePasses = { monotonic: () => performance.now() / 10 }
