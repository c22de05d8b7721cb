/** Decodes percent-encoded text. Text with an invalid encoding stays as it is. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
