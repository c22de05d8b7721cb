/**
 * Text for a number of up to 999 digits that sorts by bytes as the number does: its length comes first. It starts with a
 * character from `1` to `}`, so that text before or after all numbers can start with another character.
 */
export function numberKey(digits: string): string {
  const number = digits.replace(/^0+(?=\d)/, '')
  const { length } = number
  // `1` to `l` are lengths of 1 to 60; a longer one is spelled out.
  const mark = length <= 60 ? String.fromCharCode(48 + length) : `}${String(length).padStart(3, '0')}`
  return mark + number
}
