// Platforms of an image as a short text.
import { digestWords } from '../../words/digests.ts'

const most = 3

/** Platforms without the operating system of the first one if it is the same, such as `linux/amd64, arm64`. */
export function platformText(platforms: readonly string[]): string {
  if (platforms.length === 0) return '–'
  const os = `${platforms[0]!.split('/', 1)[0]}/`
  const usual = (one: string) => one.replace(/(?<=amd64)\/v1$|(?<=arm64)\/v8$/, '')
  const names = platforms.map((one, i) => usual(i > 0 && one.startsWith(os) ? one.slice(os.length) : one))
  const more = names.length - most
  return `${names.slice(0, most).join(', ')}${more > 0 ? ` ${digestWords.moreStatements(more)}` : ''}`
}
