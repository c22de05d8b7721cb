/** How many times as much is tried as usual, in tests that try by chance: `PINFOLD_TEST_TIMES=10`. */
export const times = Number(process.env.PINFOLD_TEST_TIMES ?? 1)

/** Options of a server whose minute never passes: its rate limits stay used up, however slow the machine is. */
export const noMinutePasses = { monotonic: () => 1000 }
