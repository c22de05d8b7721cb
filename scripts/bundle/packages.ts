// npm packages whose code is in the bundle, and their licenses.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile } from 'esbuild'
import { root } from '../run.ts'

export type NpmPackage = { name: string; version: string; license: string; integrity: string }
type Described = { author?: string | { name: string }; repository?: string | { url: string } }
type Locked = { packages: Record<string, Omit<NpmPackage, 'name'>> }

/** Folder of the package that a file belongs to, such as `node_modules/a/node_modules/@b/c`. */
const folderOf = (file: string): string | undefined => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]

const foldersIn = ({ inputs }: Metafile): string[] =>
  [...new Set(Object.keys(inputs).flatMap((file) => folderOf(file) ?? []))].sort()

/** Packages in the bundle, with their entries in the lock file. */
export function packagesIn(metafile: Metafile): NpmPackage[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Locked
  return foldersIn(metafile).map((folder) => {
    const { version, license = 'NOASSERTION', integrity } = packages[folder]!
    return {
      name: folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      license,
      integrity,
    }
  })
}

/** Text with the license of each package in the bundle. Most licenses require it in each copy. */
export function noticesOf(metafile: Metafile): string {
  const folders = foldersIn(metafile)
  const parts = packagesIn(metafile).map(({ name, version, license }, i) => {
    const folder = join(root, folders[i]!)
    const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file))
    const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').trim())
    if (texts.length === 0) texts.push(withoutText(folder))
    return [`${name} ${version} (${license})`, ...texts].join('\n\n')
  })
  const head = 'The program contains code of these npm packages, under these licenses.'
  return `${[head, ...parts].join(`\n\n${'='.repeat(80)}\n\n`)}\n`
}

/** Line for a package without a file that has its license. */
function withoutText(folder: string): string {
  const { author, repository } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Described
  const who = typeof author === 'string' ? author : author?.name
  const where = typeof repository === 'string' ? repository : repository?.url
  return [
    `The package has no license file.`,
    ...(who ? [`Author: ${who}`] : []),
    ...(where ? [`Source: ${where}`] : []),
  ].join('\n')
}
