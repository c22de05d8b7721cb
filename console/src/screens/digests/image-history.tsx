// Assignments of a digest to tags, including former and deleted tags, in pages.
import { paths } from '../../app/paths.ts'
import type { Move } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { isDeletion, readMoves } from '../tags/moves.ts'
import { SaveProof } from '../tags/proof.tsx'
import { When } from '../tags/when.tsx'

type Props = { names: readonly string[]; repo: string; digest: string; after?: string }

export function ImageHistory({ names, repo, digest, after = '' }: Props) {
  const page = useLoad(`ever ${repo} ${digest} ${after}`, (signal) => readMoves(repo, { digest, after }, signal))
  return (
    <Shown of={page}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{digestWords.neverTagged}</Empty>}
          {items.length > 0 && (
            <Table
              caption={digestWords.allTagsOfDigest}
              columns={tagColumns(names, repo)}
              items={items}
              keyOf={keyOfMove}
            />
          )}
          <More next={next}>{(rest) => <ImageHistory names={names} repo={repo} digest={digest} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}

const keyOfMove = ({ tag, time }: Move): string => `${tag} ${time}`

const tagColumns = (names: readonly string[], repo: string): Column<Move>[] => [
  {
    title: words.tag,
    isHead: true,
    cell: ({ tag, time }) => (
      <a data-main href={paths.tag(names, tag, { at: time })}>
        <bdi>{tag}</bdi>
      </a>
    ),
  },
  {
    title: words.state,
    cell: (move) =>
      isDeletion(move) ? (
        <Badge kind="warn">{words.deleted}</Badge>
      ) : move.endTime ? (
        <Badge kind="plain">{digestWords.former}</Badge>
      ) : (
        <Badge kind="good">{digestWords.current}</Badge>
      ),
  },
  { title: words.from, cell: (move) => <When move={move} /> },
  { title: words.to, cell: ({ endTime }) => <Time at={endTime} /> },
  { title: words.actor, cell: ({ actorName }) => <bdi>{actorName || words.nameUnknown}</bdi> },
  {
    title: tagWords.proof,
    cell: (move) => !isDeletion(move) && <SaveProof names={names} repo={repo} tag={move.tag} at={move.time} />,
  },
]
