// Files of the product in the image: Node and the bundle.
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeBundle } from '../bundle/bundle.ts'
import { type NpmPackage, packagesIn } from '../bundle/packages.ts'
import { type Entry, entriesBelow } from './entries.ts'
import { type Architecture, platforms } from './platforms.ts'

export type Product = { version: string; packages: NpmPackage[]; node: Entry[]; own: Entry[] }

type Installed = { packages: Record<string, { version: string; integrity: string }> }

const prefix = 'opt/pinfold'
/** Installs the Node of the platform with npm, without running scripts, and writes the bundle. */
export async function productEntries(root: string, architecture: Architecture, work: string): Promise<Product> {
  const { cpu, node } = platforms[architecture]
  const folder = join(work, `npm-${architecture}`)
  mkdirSync(folder)
  for (const name of ['package.json', 'package-lock.json']) copyFileSync(join(root, name), join(folder, name))
  const flags = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  execFileSync('npm', ['ci', ...flags, '--os=linux', `--cpu=${cpu}`, '--libc=glibc'], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const modules = join(folder, 'node_modules')
  const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')) as Installed
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const nodeFolder = join(modules, node)
  const bundle = join(work, `bundle-${architecture}`)
  const metafile = await writeBundle(bundle)
  const isShown = (path: string) => !path.startsWith('bin/')
  return {
    version,
    packages: [{ name: node, ...packages[`node_modules/${node}`]!, license: 'MIT' }, ...packagesIn(metafile)],
    node: [
      { path: 'usr/local/bin/node', mode: 0o755, content: readFileSync(join(nodeFolder, 'bin/node')) },
      { path: 'usr/share/doc/nodejs/LICENSE', mode: 0o644, content: readFileSync(join(nodeFolder, 'LICENSE')) },
    ],
    own: [...entriesBelow(bundle, prefix, isShown).map((entry) => ({ ...entry, mode: 0o644 })), ...program],
  }
}

/** Replaces bin/pinfold, which needs a shell. */
const program: Entry[] = [
  {
    path: `${prefix}/bin/pinfold`,
    mode: 0o755,
    content: Buffer.from("#!/usr/local/bin/node --expose-gc\nimport '../pinfold.cjs'\n"),
  },
  { path: 'usr/local/bin/pinfold', mode: 0o777, link: `/${prefix}/bin/pinfold` },
]
