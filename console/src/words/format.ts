// Numbers and counts as texts.
export const numbers = (count: number): string => new Intl.NumberFormat('en').format(count)

/** Text such as `1 tag` or `2,000 tags`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${numbers(count)} ${count === 1 ? one : many}`
