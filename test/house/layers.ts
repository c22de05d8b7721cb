import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Domains and their folders, from lowest to highest. A file may import from its own folder, from earlier folders of its domain,
 * and from earlier domains.
 */
export const layers: Readonly<Record<string, readonly string[]>> = {
  outbox: [],
  iam: [
    'access',
    'groups',
    'identities',
    'roles',
    'sessions',
    'push-tokens',
    'invites',
    'email-domains',
    'identity-providers',
    'scim',
    'sign-in',
    'terms',
    'access-requests',
    'accounts',
    'explanations',
    'repeats',
    'signing-keys',
  ],
  registry: [
    'blobs',
    'manifests',
    'repos',
    'tags',
    'images',
    'pushes',
    'usage',
    'settings',
    'lifecycles',
    'deployments',
    'verification',
    'deletions',
  ],
  rules: [],
  events: ['routing', 'subscriptions', 'delivery', 'stream', 'refusals', 'audit'],
  ledger: ['proofs', 'ledgers'],
  advisories: ['metadata', 'advisories', 'documents', 'reports'],
  scanning: [
    'queue',
    'lists',
    'records',
    'own-advisories',
    'findings',
    'image-findings',
    'scan-reports',
    'ranks',
    'scanners',
    'signers',
    'risks',
    'reports',
    'exports',
    'images',
    'changes',
    'sources',
    'cleanup',
  ],
  policy: ['retention', 'digests', 'views', 'pull-rules', 'gates'],
  mirrors: ['follows', 'copies'],
  libraries: [],
  search: [],
  summaries: [],
  ping: [],
}

const domains = Object.keys(layers)

export type Import = { from: string; to: string; typeOnly: boolean; specifier: string }

/** Imports of a file, as paths from the project's root. Packages and `node:` modules are left out. */
export function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found: Import[] = []
  const statement = /^(import|export)\s+(type\s+)?[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\(\s*'([^']+)'/gm
  for (const match of text.matchAll(statement)) {
    const specifier = match[3] ?? match[4] ?? match[5]!
    if (!specifier.startsWith('.') && !specifier.startsWith('#')) continue
    const to = specifier.startsWith('.')
      ? relative(root, resolve(root, dirname(file), specifier))
      : specifier.startsWith('#gen/')
        ? specifier.slice(1)
        : `src/${specifier.slice(1)}`
    found.push({ from: file, to, typeOnly: match[2] !== undefined, specifier })
  }
  return found
}

/** All source files without their unit tests. */
export const sources = globSync('src/**/*.ts', { cwd: root })
  .filter((file) => !file.endsWith('.test.ts'))
  .sort()

/** The domain of a file in a folder of `src/domains`; empty for any other file. */
export function domainOf(path: string): string {
  const parts = path.split('/')
  return parts[1] === 'domains' && parts.length > 3 ? parts[2]! : ''
}

/** True if both files are in domains, and the imported file is in the same or a lower domain. */
export function reaches({ from, to }: Pick<Import, 'from' | 'to'>): boolean {
  const [here, there] = [domainOf(from), domainOf(to)]
  if (here === '' || there === '') return false
  return here === there || domains.indexOf(there) < domains.indexOf(here)
}

/** True if a file of a domain imports from a higher domain, or from a higher folder of its own domain. */
export function isUpward({ from, to }: Pick<Import, 'from' | 'to'>): boolean {
  const [here, there] = [domainOf(from), domainOf(to)]
  if (here === '' || there === '') return false
  if (here !== there) return !reaches({ from, to })
  const folders = layers[here] ?? []
  const positionOf = (path: string): number => folders.indexOf(folderOf(path))
  return folderOf(from) !== '' && positionOf(to) > positionOf(from)
}

/** Folder of a file within its domain. Empty for a file beside `domain.ts`. */
export function folderOf(path: string): string {
  return path.split('/').slice(3, -1).join('/')
}
