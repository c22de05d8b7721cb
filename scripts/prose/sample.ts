// Random sample of texts for a reader who does not know the code: `bin/pinfold-node scripts/prose.ts --sample SEED`.
import { createHash } from 'node:crypto'
import type { Text } from './texts.ts'

type Found = Text & { file: string }

/** Kinds of texts in a sample, with their number and a filter for files and texts. */
const parts: readonly { name: string; count: number; has(text: Found): boolean }[] = [
  { name: 'Comments', count: 60, has: ({ kind }) => kind === 'comment' },
  { name: 'Test names', count: 40, has: ({ kind }) => kind === 'test name' },
  { name: 'Command line', count: 40, has: ({ kind, file }) => kind === 'message' && file.startsWith('src/cli/') },
  { name: 'Console', count: 40, has: ({ kind, file }) => kind === 'message' && file.startsWith('console/') },
  {
    name: 'API errors and log messages',
    count: 20,
    has: ({ kind, file }) => kind === 'message' && /^src\/(?:api|domains|oci|scim|issuer|edge)\//.test(file),
  },
]
const pages = 5

/** Lines of the sample for a seed: texts of each kind, and names of documentation pages. */
export function sampleOf(seed: string, texts: readonly Found[]): string[] {
  const rank = (text: string) => createHash('sha256').update(`${seed}\n${text}`).digest('hex')
  const drawn = <T>(items: readonly T[], keyOf: (item: T) => string, count: number): T[] =>
    items
      .map((item) => ({ item, rank: rank(keyOf(item)) }))
      .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
      .slice(0, count)
      .map(({ item }) => item)
  const keyOf = ({ file, line, text }: Found) => `${file}:${line}:${text}`
  const lines = parts.flatMap(({ name, count, has }) => [
    `## ${name}`,
    ...drawn(texts.filter(has), keyOf, count).map(({ text, asWritten }, i) => `${i + 1}. ${asWritten ?? text}`),
  ])
  const docs = new Set(texts.filter(isPage).map(({ file }) => file))
  return [...lines, '## Pages of the docs', ...drawn([...docs], (file) => file, pages)]
}

const isPage = ({ file, kind }: Found): boolean => kind === 'docs' && /^docs\/(?!decisions|api)/.test(file)
