// First page after the sign-in, and tables of tags.
import { useEffect } from 'preact/hooks'
import { firstOrganization } from '../../app/organization.ts'
import { paths } from '../../app/paths.ts'
import { go } from '../../app/route.ts'
import { me } from '../../app/session.ts'
import { namesOfRepo, parentOf } from '../../data/names.ts'
import type { Tag } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { useLoad } from '../../ui/load.ts'
import { nameOf, Screen } from '../../ui/screen.tsx'
import { Empty, Shown, Waiting } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Copy, Digest } from '../../ui/text.tsx'
import { startWords } from '../../words/start.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { readLastMove } from '../tags/moves.ts'

/** `by` is the actor of the last update. Undefined if the actor could not be read. */
export type FoundTag = Tag & { names: readonly string[]; by: string | undefined }

/** Opens the organization of the last visit, or the user's first one. */
export function HomeScreen() {
  const first = useLoad('home', (signal) => firstOrganization(signal))
  const name = first.data ?? ''
  useEffect(() => {
    if (name !== '') go(paths.group([name]), { replace: true })
    // A new server has no organization yet.
    else if (first.data === '' && me.isOperator) go(paths.setup, { replace: true })
  }, [name, first.data])
  return (
    <Screen title={words.nouns.overview}>
      <Shown of={first}>
        {() =>
          name === '' ? (
            <Empty command="pinfold orgs create NAME">
              {me.isOperator ? startWords.noOrganizations : startWords.notMember}
            </Empty>
          ) : (
            <Waiting />
          )
        }
      </Shown>
    </Screen>
  )
}

/** Adds the path of the repository and the actor of the last update to each tag. */
export async function withNames(tag: Tag, signal: AbortSignal): Promise<FoundTag> {
  const repo = parentOf(tag.uid)
  const [names, move] = await Promise.all([
    namesOfRepo(repo),
    readLastMove(repo, tag.name, signal).catch(() => undefined),
  ])
  return { ...tag, names, by: move && (move.actorName || words.nameUnknown) }
}

export function TagTable({ caption, tags }: { caption: string; tags: readonly FoundTag[] }) {
  return <Table caption={caption} columns={columns} items={tags} keyOf={({ uid }) => uid} />
}

const columns: Column<FoundTag>[] = [
  {
    title: words.tag,
    isHead: true,
    cell: ({ names, name }) => (
      <a data-main href={paths.tag(names, name)}>
        <bdi>
          {names.map(nameOf).join('/')}:{name}
        </bdi>
      </a>
    ),
  },
  { title: words.digest, cell: ({ names, digest }) => <Digest of={digest} href={paths.digest(names, digest)} /> },
  { title: words.updatedAt, cell: ({ updateTime }) => <Ago at={updateTime} /> },
  { title: startWords.updatedBy, cell: ({ by }) => <bdi>{by ?? words.unknown}</bdi> },
  {
    title: words.copy,
    cell: ({ names, name, digest }) => (
      <Copy isPin text={pinOf(names, digest)} label={tagWords.copyWithDigestOf(name)}>
        {tagWords.copyWithDigest}
      </Copy>
    ),
  },
]

/** Name of the image with its digest. */
export function pinOf(names: readonly string[], digest: string): string {
  return `${me.host}/${names.join('/')}@${digest}`
}
