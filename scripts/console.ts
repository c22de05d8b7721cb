// Build of the console: scripts, styles, fonts, the icon, and the licenses of its packages.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { type BuildResult, buildSync } from 'esbuild'
import type { Manifest } from '#api/ui/console.ts'
import { consoleFonts } from './console-fonts.ts'

/**
 * Maximum sizes in bytes, compressed as browsers receive them: everything that the first screen loads except fonts, the script of
 * any other area, and the fonts.
 */
export const consoleBudget = { first: 60_000, area: 25_000, fonts: 40_000 }

/** Area that the first screen after the sign-in belongs to. */
const firstArea = 'overview'
const areas = 'overview search repositories images policies members integrations settings server account'.split(' ')

type Outputs = NonNullable<BuildResult['metafile']>['outputs']

/** Files of `gen/console`, by name. Throws if they are larger than the budget. */
export async function consoleFiles(root: string): Promise<Record<string, string | Buffer>> {
  const { outputFiles, metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: {
      console: 'console/src/main.tsx',
      'console-style': 'console/style.css',
      ...Object.fromEntries(areas.map((area) => [area, `console/src/areas/${area}.tsx`])),
    },
    outdir: 'out',
    chunkNames: 'chunk-[hash]',
    bundle: true,
    splitting: true,
    write: false,
    metafile: true,
    minify: true,
    format: 'esm',
    target: ['chrome123', 'firefox121', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    tsconfig: 'console/tsconfig.json',
    legalComments: 'none',
    charset: 'utf8',
    external: ['*.woff2'],
  })
  const names = fixedNames(metafile.outputs)
  const renamed = (text: string) => text.replaceAll(/chunk-[A-Z0-9]{8}\.js/g, (name) => names.get(name) ?? name)
  const texts = outputFiles.map(({ path, text }): [string, string] => {
    const name = path.slice(path.lastIndexOf('/') + 1)
    return [names.get(name) ?? name.replace('console-style', 'console'), renamed(text)]
  })
  const fonts = await consoleFonts(root)
  const loads = (name: string) => [...closureOf(metafile.outputs, `out/${name}.js`)].map((one) => nameIn(names, one))
  const first = [...new Set([...loads('console'), ...loads(firstArea)])]
  const manifest: Manifest = {
    first,
    styles: 'console.css',
    icon: 'icon.svg',
    fonts: Object.keys(fonts),
    areas: Object.fromEntries(areas.map((area) => [area, loads(area).filter((one) => !first.includes(one))])),
  }
  const packages = new Set(Object.keys(metafile.inputs).flatMap((input) => packageOf(input) ?? []))
  const files: Record<string, string | Buffer> = {
    ...Object.fromEntries(texts),
    ...fonts,
    'icon.svg': readFileSync(join(root, 'console/icon.svg'), 'utf8'),
    'manifest.json': `${JSON.stringify(manifest, null, 1)}\n`,
    'LICENSES.txt': licenses(root, [...packages, '@fontsource-variable/inter', '@fontsource/jetbrains-mono'].sort()),
  }
  const problems = overBudget(manifest, (name) => gzipSync(files[name]!, { level: 9 }).length)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return files
}

/** Problems of files that are larger than the budget. `sizeOf` returns the compressed size of a file. */
export function overBudget(manifest: Manifest, sizeOf: (name: string) => number): string[] {
  const sum = (names: readonly string[]) => names.reduce((total, name) => total + sizeOf(name), 0)
  const checked: [string, number, number][] = [
    ['the first screen', sum([...manifest.first, manifest.styles]), consoleBudget.first],
    ['the fonts', sum(manifest.fonts), consoleBudget.fonts],
    ...Object.entries(manifest.areas).map(([area, names]): [string, number, number] => [
      `the area ${area}`,
      sum(names),
      consoleBudget.area,
    ]),
  ]
  return checked
    .filter(([, size, most]) => size > most)
    .map(([what, size, most]) => `${what} of the console has ${size} bytes, of at most ${most}`)
}

/** Files that a script imports statically, with the script itself first. */
function closureOf(outputs: Outputs, path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen
  seen.add(path)
  for (const { path: imported, kind } of outputs[path]!.imports) {
    if (kind === 'import-statement') closureOf(outputs, imported, seen)
  }
  return seen
}

/**
 * Names of shared chunks that do not change with their content, so that a change of one file shows as a change of this file. The
 * entry points that load a chunk identify it.
 */
function fixedNames(outputs: Outputs): Map<string, string> {
  const users = new Map<string, string[]>()
  for (const [path, { entryPoint }] of Object.entries(outputs)) {
    if (entryPoint === undefined) continue
    for (const one of closureOf(outputs, path)) users.set(one, [...(users.get(one) ?? []), path])
  }
  const chunks = [...users].filter(([path]) => path.startsWith('out/chunk-'))
  const sorted = chunks.map(([path, of]) => ({ path, key: of.sort().join() })).sort((a, b) => (a.key < b.key ? -1 : 1))
  return new Map(sorted.map(({ path }, i) => [path.slice('out/'.length), `shared-${i + 1}.js`]))
}

const nameIn = (names: Map<string, string>, path: string): string => {
  const name = path.slice('out/'.length)
  return names.get(name) ?? name
}

function packageOf(input: string): string | undefined {
  return /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]
}

/** License text of each package, unchanged. */
function licenses(root: string, names: readonly string[]): string {
  const texts = names.map((name) => {
    const folder = join(root, 'node_modules', name)
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
      string,
      string
    >
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, 'LICENSE'), 'utf8').trim()}\n`
  })
  return `The console contains these packages.\n\n${texts.join('\n---\n\n')}`
}
