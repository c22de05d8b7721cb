// Files of the product in the image: Node, the production packages of package-lock.json, and the files of this repository.
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Entry, entriesBelow } from './entries.ts'
import { type Architecture, platforms } from './platforms.ts'

export type NpmPackage = { name: string; version: string; license: string; integrity: string }
export type Product = { version: string; packages: NpmPackage[]; node: Entry[]; modules: Entry[]; own: Entry[] }

type Installed = { packages: Record<string, { version: string; license?: string; integrity: string }> }

const prefix = 'opt/pinfold'
const ownFiles = ['LICENSE', 'NOTICE', 'CHANGELOG.md', 'package.json', 'README.md', 'SECURITY.md']
const ownFolders = ['src', 'gen', 'docs', 'proto']

/** npm installs the packages of the platform into a separate folder, without running their scripts. */
export function productEntries(root: string, architecture: Architecture, work: string): Product {
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
  // Prebuilt add-ons for the engine Bare are left out, since Node does not load them.
  const isModule = (path: string) => !/^\.|\/prebuilds\//.test(path) && !path.startsWith(`${node}/`)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const nodeFolder = join(modules, node)
  return {
    version,
    packages: Object.entries(packages).map(([path, { version, license = 'NOASSERTION', integrity }]) => ({
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      license,
      integrity,
    })),
    node: [
      { path: 'usr/local/bin/node', mode: 0o755, content: readFileSync(join(nodeFolder, 'bin/node')) },
      { path: 'usr/share/doc/nodejs/LICENSE', mode: 0o644, content: readFileSync(join(nodeFolder, 'LICENSE')) },
    ],
    modules: entriesBelow(modules, `${prefix}/node_modules`, isModule),
    own: tracked(root),
  }
}

/** Replaces bin/pinfold, which needs a shell. */
const program: Entry[] = [
  {
    path: `${prefix}/bin/pinfold`,
    mode: 0o755,
    content: Buffer.from("#!/usr/local/bin/node --expose-gc\nimport '../src/main.ts'\n"),
  },
  { path: 'usr/local/bin/pinfold', mode: 0o777, link: `/${prefix}/bin/pinfold` },
]

/** Takes only files that git tracks, so that no other file of a checkout gets into an image. */
function tracked(root: string): Entry[] {
  const list = execFileSync('git', ['ls-files', '-z', '--', ...ownFiles, ...ownFolders], {
    cwd: root,
    encoding: 'utf8',
  })
  const known = new Set(list.split('\0'))
  const isOwn = (path: string) => known.has(path) && !path.endsWith('.test.ts')
  const plain = (entry: Entry): Entry => ({ ...entry, mode: 0o644 })
  const files = ownFiles.map(
    (path): Entry => ({
      path: `${prefix}/${path}`,
      mode: 0o644,
      content: readFileSync(join(root, path)),
    }),
  )
  const below = ownFolders.flatMap((folder) =>
    entriesBelow(join(root, folder), `${prefix}/${folder}`, (path) => isOwn(`${folder}/${path}`)),
  )
  return [...files, ...below.map(plain), ...program]
}
