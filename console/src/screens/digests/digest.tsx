// Screen of a digest: every tag that ever pointed to it, its metadata, and its content. Content that was not read is shown as
// unknown, never as empty.
import { paths } from '../../app/paths.ts'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readNext } from '../../data/list.ts'
import { findRepo } from '../../data/names.ts'
import type { Finding, Findings, Gap, Move, Packages, Tag } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { noFindingsTexts } from '../../ui/scan-words.ts'
import { nameOf, Screen, trailOf } from '../../ui/screen.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, bytes, Code, Digest, hex8, Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { AdmissionResults } from '../rules/verdicts.tsx'
import { pinOf } from '../start/start.tsx'
import { isDeletion, readMoves } from '../tags/moves.ts'
import { SaveProof } from '../tags/proof.tsx'
import { When } from '../tags/when.tsx'
import { DigestRetention } from './digest-retention.tsx'
import { Pulls } from './pulls.tsx'
import { Referrers } from './referrers.tsx'

type Props = { names: readonly string[]; digest: string }

export function DigestScreen({ names, digest }: Props) {
  const repo = useLoad(`repo ${names.join('/')}`, async () => (await findRepo(names)).item)
  const trail = [...trailOf(names), { label: names.at(-1)!, href: paths.repo(names) }]
  return (
    <Screen title={`${nameOf(names.at(-1)!)}@${hex8(digest)}`} trail={trail} crumb={hex8(digest)}>
      <Code text={pinOf(names, digest)} label={tagWords.copyWithDigest} />
      <Shown of={repo}>
        {({ uid }) => (
          <>
            <h2>{digestWords.allTagsOfDigest}</h2>
            <AllTags names={names} repo={uid} digest={digest} after="" />
            <h2>{digestWords.retention}</h2>
            <DigestRetention names={names} repo={uid} digest={digest} />
            {can('repo.check_policies', uid) && <AdmissionResults repo={uid} digest={digest} />}
            <h2>{digestWords.platforms}</h2>
            <Platforms repo={uid} digest={digest} />
            <h2>{digestWords.signatures}</h2>
            <Signatures names={names} repo={uid} digest={digest} />
            <h2>{digestWords.referrers}</h2>
            <Referrers names={names} repo={uid} digest={digest} />
            <h2>{digestWords.pulls}</h2>
            <Pulls repo={uid} digest={digest} />
            <h2>{words.vulnerabilities}</h2>
            <Vulnerabilities repo={uid} digest={digest} />
            <h2>{words.packages}</h2>
            <PackagesOf repo={uid} digest={digest} after="" />
          </>
        )}
      </Shown>
    </Screen>
  )
}

type At = { repo: string; digest: string }

/** Assignments of the digest to tags, including former and deleted tags, in pages. */
function AllTags({ names, repo, digest, after }: At & { names: readonly string[]; after: string }) {
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
          <More next={next}>{(rest) => <AllTags names={names} repo={repo} digest={digest} after={rest} />}</More>
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

function Platforms({ repo, digest }: At) {
  const read = useLoad(`platforms ${repo} ${digest}`, async (signal) => {
    const path = `/registry/v2/repos/${repo}/digests/${digest}`
    const { architectures } = await ask<{ architectures: string[] }>('GET', `${path}/architectures`, { signal })
    return Promise.all(
      architectures.map(async (architecture) => {
        const query = { architecture }
        const size = await ask<{ size: string }>('GET', `${path}/size`, { query, signal }).catch(() => undefined)
        return { architecture, size: size && Number(size.size) }
      }),
    )
  })
  if (isMissing(read.error)) return <Empty>{digestWords.digestMissing}</Empty>
  return (
    <Shown of={read}>
      {(platforms) =>
        platforms.length === 0 ? (
          <Empty>{digestWords.noPlatforms}</Empty>
        ) : (
          <Table
            caption={digestWords.platforms}
            items={platforms}
            keyOf={({ architecture }) => architecture}
            columns={[
              { title: digestWords.platform, isHead: true, cell: ({ architecture }) => <bdi>{architecture}</bdi> },
              { title: words.size, cell: ({ size }) => (size === undefined ? words.unknown : bytes(size)) },
            ]}
          />
        )
      }
    </Shown>
  )
}

/** Tags of signatures and attestations. Their names contain the digest. */
function Signatures({ names, repo, digest }: At & { names: readonly string[] }) {
  const read = useLoad(`signatures ${repo} ${digest}`, (signal) => {
    const query = { prefix: digest.replace(':', '-'), includeReferrers: true }
    return readNext<Tag>(`/registry/v2/repos/${repo}/tags`, 'tags', { size: 50, query, signal })
  })
  return (
    <Shown of={read}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>{digestWords.noSignatures}</Empty>
        ) : (
          <Table
            caption={digestWords.signatures}
            items={items}
            keyOf={({ uid }) => uid}
            columns={[
              {
                title: words.tag,
                isHead: true,
                cell: ({ name }) => (
                  <a href={paths.tag(names, name)}>
                    <bdi>{name.replace(/^(sha\d+-[0-9a-f]{12})[0-9a-f]+/, '$1…')}</bdi>
                  </a>
                ),
              },
              { title: words.digest, cell: (one) => <Digest of={one.digest} href={paths.digest(names, one.digest)} /> },
              { title: words.updatedAt, cell: ({ updateTime }) => <Time at={updateTime} /> },
            ]}
          />
        )
      }
    </Shown>
  )
}

const isMissing = (error: unknown): boolean => error instanceof Refusal && error.status === 404

/** Coverage gaps with their reasons. */
export function Gaps({ gaps }: { gaps: readonly Gap[] }) {
  if (gaps.length === 0) return null
  return (
    <Note kind="warn">
      <p>{digestWords.incomplete}</p>
      <ul>
        {gaps.map(({ reason, subject, message }) => (
          <li key={`${reason} ${subject} ${message}`}>
            <bdi>{[message || reason, subject].filter((one) => one !== '').join(': ')}</bdi>
          </li>
        ))}
      </ul>
    </Note>
  )
}

const ranks = ['critical', 'high', 'medium', 'low', 'negligible', 'unknown']

function Vulnerabilities({ repo, digest }: At) {
  const read = useLoad(`findings ${repo} ${digest}`, (signal) =>
    ask<Findings>('GET', `/registry/v2/repos/${repo}/digests/${digest}/findings`, { signal }),
  )
  if (isMissing(read.error)) return <Empty>{digestWords.digestMissing}</Empty>
  return (
    <Shown of={read}>
      {({ findings, gaps, coverage }) => {
        const [none, unscanned] = noFindingsTexts(coverage)
        const sorted = [...findings].sort((a, b) => ranks.indexOf(a.severity) - ranks.indexOf(b.severity))
        return (
          <>
            <Gaps gaps={gaps} />
            {sorted.length > 0 && <FindingsTable findings={sorted} />}
            {sorted.length === 0 && (
              <Empty>
                {none} <bdi>{unscanned}</bdi>
              </Empty>
            )}
          </>
        )
      }}
    </Shown>
  )
}

const mostFindings = 500

function FindingsTable({ findings }: { findings: readonly Finding[] }) {
  const counts = ranks.map((rank) => ({ rank, count: findings.filter(({ severity }) => severity === rank).length }))
  const shown = counts.filter(({ count }) => count > 0)
  return (
    <>
      <p>{shown.map(({ rank, count }) => `${count} ${words.severities[rank]}`).join(', ')}</p>
      <Table
        caption={words.vulnerabilities}
        items={findings.slice(0, mostFindings)}
        keyOf={({ source, record, purl }) => `${source} ${record} ${purl}`}
        columns={findingColumns}
      />
      {findings.length > mostFindings && <Note>{words.onlySome(mostFindings, findings.length)}</Note>}
    </>
  )
}

const findingColumns: Column<Finding>[] = [
  {
    title: words.vulnerability,
    isHead: true,
    cell: ({ vulnerabilities, record }) =>
      (vulnerabilities.length > 0 ? vulnerabilities : [record]).map((id) => (
        <a key={id} class="chip" href={paths.search(id)}>
          <bdi>{id}</bdi>
        </a>
      )),
  },
  {
    title: words.severity,
    cell: ({ severity }) => (
      <Badge kind={['critical', 'high'].includes(severity) ? 'bad' : 'plain'}>
        {words.severities[severity] ?? severity}
      </Badge>
    ),
  },
  { title: words.package, cell: ({ purl }) => <bdi>{purl}</bdi> },
  {
    title: digestWords.fixedIn,
    cell: ({ fixedVersions }) => <bdi>{fixedVersions.join(', ') || digestWords.noFix}</bdi>,
  },
  {
    title: words.state,
    cell: ({ suppressedBy, acceptedBy, statements }) => (
      <>
        {suppressedBy
          ? words.findingStates.SUPPRESSED
          : acceptedBy.length > 0
            ? words.findingStates.ACCEPTED
            : words.findingStates.AFFECTED}
        {(acceptedBy.length > 0 || statements.length > 0) && (
          <FindingNotes accepted={acceptedBy} statements={statements} />
        )}
      </>
    ),
  },
]

const maxStatements = 3

type NotesProps = { accepted: Finding['acceptedBy']; statements: Finding['statements'] }

/** Accepted risks and VEX statements of a finding. */
function FindingNotes({ accepted, statements }: NotesProps) {
  const shownStatements = statements.slice(0, maxStatements)
  return (
    <ul class="plain">
      {accepted.map((one) => (
        <li key={`${one.vulnerability} ${one.riskAcceptanceUid}${one.vexSignerUid} ${one.reason}`}>
          <bdi>{one.reason}</bdi> ({words.until} <Time at={one.expireTime} />)
        </li>
      ))}
      {shownStatements.map(({ uid, author, status, justification, text }) => (
        <li key={uid}>
          <bdi>{digestWords.statementOf(author, [status, justification, text].filter(Boolean).join(', '))}</bdi>
        </li>
      ))}
      {statements.length > maxStatements && <li>{digestWords.moreStatements(statements.length - maxStatements)}</li>}
    </ul>
  )
}

function PackagesOf({ repo, digest, after }: At & { after: string }) {
  const read = useLoad(`packages ${repo} ${digest} ${after}`, (signal) => {
    const query = { pageSize: 200, pageToken: after }
    return ask<Packages>('GET', `/registry/v2/repos/${repo}/digests/${digest}/packages`, { query, signal })
  })
  if (isMissing(read.error)) return <Empty>{digestWords.digestMissing}</Empty>
  return (
    <Shown of={read}>
      {({ packages, gaps, nextPageToken }) => (
        <>
          {after === '' && <Gaps gaps={gaps} />}
          {packages.length === 0 && (
            <Empty>{gaps.length > 0 ? digestWords.noneInIncomplete : digestWords.noPackages}</Empty>
          )}
          {packages.length > 0 && (
            <Table
              caption={words.packages}
              items={packages}
              keyOf={({ purl, locations }) => `${purl} ${locations.join()}`}
              columns={[
                { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
                { title: words.version, cell: ({ version }) => <bdi>{version}</bdi> },
                { title: words.ecosystem, cell: ({ ecosystem }) => <bdi>{ecosystem}</bdi> },
              ]}
            />
          )}
          <More next={nextPageToken}>{(rest) => <PackagesOf repo={repo} digest={digest} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}
