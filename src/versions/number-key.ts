/**
 * Text for a number of up to 999 digits, whose byte order is the order of the numbers. The length comes first. The text begins
 * with a character from `1` to `}`, so other characters can sort before or after all numbers.
 */
export function numberKey(digits: string): string {
  const number = digits.replace(/^0+(?=\d)/, '')
  const { length } = number
  // Characters from `1` to `l` stand for lengths of 1 to 60. Larger lengths are written as digits.
  const mark = length <= 60 ? String.fromCharCode(48 + length) : `}${String(length).padStart(3, '0')}`
  return mark + number
}
