// Build of the console: its script, its styles and its icon, and the licenses of its packages.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildSync } from 'esbuild'

/** Maximum size of the console's script and styles in bytes, compressed as browsers receive them. */
export const consoleBudget = { 'console.js': 80_000, 'console.css': 15_000 }

/** Files of `gen/console`, by name. */
export function consoleFiles(root: string): Record<string, string> {
  const { outputFiles, metafile } = buildSync({
    absWorkingDir: root,
    entryPoints: { console: 'console/src/main.tsx', 'console-style': 'console/style.css' },
    outdir: 'out',
    bundle: true,
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
  })
  const text = (name: string) => outputFiles.find(({ path }) => path.endsWith(`/${name}`))!.text
  const packages = new Set(Object.keys(metafile.inputs).flatMap((input) => packageOf(input) ?? []))
  return {
    'console.js': text('console.js'),
    'console.css': text('console-style.css'),
    'icon.svg': readFileSync(join(root, 'console/icon.svg'), 'utf8'),
    'LICENSES.txt': licenses(root, [...packages].sort()),
  }
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
  return `console.js contains these packages.\n\n${texts.join('\n---\n\n')}`
}
