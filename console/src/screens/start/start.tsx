// Home screen: recent tag updates in all groups that the user can see.
import { paths } from '../../app/paths.ts'
import { me } from '../../app/session.ts'
import { readPage } from '../../data/list.ts'
import { namesOfRepo, parentOf } from '../../data/names.ts'
import type { Tag } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Screen } from '../../ui/screen.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Copy, Digest, Time } from '../../ui/text.tsx'
import { startWords } from '../../words/start.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { readLastMove } from '../tags/moves.ts'

const shown = 20

/** `by` is the actor of the last update. Undefined if the actor could not be read. */
export type FoundTag = Tag & { names: readonly string[]; by: string | undefined }

export function StartScreen() {
  const moves = useLoad('start', async (signal) => {
    const query = { orderBy: 'update_time desc' }
    const { items } = await readPage<Tag>('/registry/v2/tags', 'tags', { size: shown, query, signal })
    return Promise.all(items.map((tag) => withNames(tag, signal)))
  })
  return (
    <Screen title={startWords.startTitle} intro={<p>{startWords.startIntro}</p>}>
      <h2>{startWords.recentUpdates}</h2>
      <Shown of={moves}>
        {(tags) =>
          tags.length === 0 ? (
            <Empty command={`docker push ${me.host}/ORGANIZATION/NAME:TAG`}>{startWords.noTagsAnywhere}</Empty>
          ) : (
            <TagTable caption={startWords.recentUpdates} tags={tags} />
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
          {names.join('/')}:{name}
        </bdi>
      </a>
    ),
  },
  { title: words.digest, cell: ({ names, digest }) => <Digest of={digest} href={paths.digest(names, digest)} /> },
  { title: words.updatedAt, cell: ({ updateTime }) => <Time at={updateTime} /> },
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
