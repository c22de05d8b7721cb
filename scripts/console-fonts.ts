// Fonts of the console: Inter and JetBrains Mono with the characters that its texts need. Other characters use a system font.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import subsetFont from 'subset-font'

const range = (from: number, to: number): string =>
  String.fromCodePoint(...Array.from({ length: to - from + 1 }, (_, i) => from + i))

const ascii = range(0x20, 0x7e)
const latin1 = ascii + range(0xa0, 0xff)

/** Font files by name. The result is the same for each build. */
export async function consoleFonts(root: string): Promise<Record<string, Buffer>> {
  const read = (file: string) => readFileSync(join(root, 'node_modules', file))
  const inter = read('@fontsource-variable/inter/files/inter-latin-wght-normal.woff2')
  const mono = read('@fontsource/jetbrains-mono/files/jetbrains-mono-latin-400-normal.woff2')
  return {
    'inter.woff2': await subsetFont(inter, `${latin1}–—‘’“”…•−→←↑↓×⌘`, {
      targetFormat: 'woff2',
      variationAxes: { wght: { min: 400, max: 600 } },
    }),
    // Without the closure, the font has no ligatures. They would show `->` as an arrow.
    'jetbrains-mono.woff2': await subsetFont(mono, `${ascii}…→`, { targetFormat: 'woff2', noLayoutClosure: true }),
  }
}
