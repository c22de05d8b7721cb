/** Compares texts. Returns a number below 0, 0 or above 0. */
export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Compares whole numbers of any length. */
export function byNumber(a: string, b: string): number {
  const [one, other] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')]
  return one.length - other.length || byText(one, other)
}
