// Copies of repositories within this registry, with their state and the button that ends them.
import { paths } from '../../app/paths.ts'
import { ask } from '../../data/api.ts'
import { isCopy, readCopies } from '../../data/copies.ts'
import { namesOfRepo } from '../../data/names.ts'
import type { Repo } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Badge, Breakable, Time } from '../../ui/text.tsx'
import { mirrorWords } from '../../words/mirrors.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'

/** Copies in a group and below it. */
export function Copies({ group }: { group: string }) {
  return <CopyTable scope={group} empty={mirrorWords.noCopies} wants={() => true} />
}

/** Source that a repository copies, and the repositories of its organization that copy this repository. */
export function CopiesOf({ repo }: { repo: Repo }) {
  return (
    <>
      <h2>{mirrorWords.copies}</h2>
      {isCopy(repo) && <Source repo={repo} />}
      <CopyTable
        scope={repo.uid.split('/')[0]!}
        empty={mirrorWords.noCopiesOf}
        wants={({ syncConfig }) => syncConfig.source === repo.uid}
      />
    </>
  )
}

function Source({ repo: { uid, syncConfig } }: { repo: Repo }) {
  return (
    <p>
      <CopyState repo={uid} /> {mirrorWords.copyOf} <RepoName uid={syncConfig.source} />, {words.until}{' '}
      <Time at={syncConfig.expirationTime} />
      {syncConfig.uniqueTags && `, ${mirrorWords.withUniqueTags}`}
    </p>
  )
}

/** Progress of the copy. */
function CopyState({ repo }: { repo: string }) {
  const read = useLoad(`copying ${repo}`, (signal) =>
    ask<{ status?: string }>('GET', `/registry/v1/repos/${repo}:syncstatus`, { signal }),
  )
  if (!read.data) return <span class="dim">{read.error === undefined ? '…' : words.unknown}</span>
  const { status = 'UNKNOWN' } = read.data
  return <Badge kind={status === 'FAILED' ? 'bad' : 'plain'}>{mirrorWords.copyStates[status] ?? status}</Badge>
}

function RepoName({ uid }: { uid: string }) {
  const read = useLoad(`name of ${uid}`, () => namesOfRepo(uid))
  if (!read.data) return <code title={uid}>{uid.slice(-16)}</code>
  return (
    <a href={paths.repo(read.data)}>
      <Breakable text={read.data.join('/')} />
    </a>
  )
}

type Props = { scope: string; empty: string; wants: (repo: Repo) => boolean }

function CopyTable({ scope, empty, wants }: Props) {
  const read = useLoad(`copies ${scope}`, (signal) => readCopies(scope, signal))
  return (
    <Shown of={read}>
      {({ items, isCut }) => {
        const wanted = items.filter(wants)
        return (
          <>
            {isCut && <Note kind="warn">{mirrorWords.cutCopies}</Note>}
            {wanted.length === 0 && <Empty>{empty}</Empty>}
            {wanted.length > 0 && (
              <Table
                caption={mirrorWords.copies}
                items={wanted}
                keyOf={({ uid }) => uid}
                columns={[
                  { title: words.repository, isHead: true, cell: ({ uid }) => <RepoName uid={uid} /> },
                  { title: tagWords.source, cell: ({ syncConfig }) => <RepoName uid={syncConfig.source} /> },
                  { title: words.state, cell: ({ uid }) => <CopyState repo={uid} /> },
                  { title: mirrorWords.copiedUntil, cell: ({ syncConfig }) => <Time at={syncConfig.expirationTime} /> },
                ]}
              />
            )}
          </>
        )
      }}
    </Shown>
  )
}
