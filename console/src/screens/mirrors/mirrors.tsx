// Mirrors and copies of a group, and its upstream registries.
import { paths } from '../../app/paths.ts'
import { readNext } from '../../data/list.ts'
import { namesOfRepo } from '../../data/names.ts'
import type { Follow, Upstream } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Badge, Breakable, Time } from '../../ui/text.tsx'
import { mirrorWords } from '../../words/mirrors.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { type Kind, linesOf, ScopedList, sendTo, type Values, WithPermission } from '../rules/scoped-list.tsx'
import { Copies } from './copies.tsx'

export function MirrorsScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['integrations', 'mirrors']}>
      {({ uid }, { groups }) => (
        <>
          <h2>{mirrorWords.mirrors}</h2>
          <Mirrors group={uid} after="" />
          <h2>{mirrorWords.copies}</h2>
          <Copies group={uid} />
          <WithPermission at={{ uid, groups }}>
            <ScopedList at={{ uid, groups }} kind={upstreams} />
          </WithPermission>
        </>
      )}
    </GroupFrame>
  )
}

type Named = Follow & { names: readonly string[] }

/** Mirrors in the group and below it, in pages. */
function Mirrors({ group, after }: { group: string; after: string }) {
  const read = useLoad(`follows ${group} ${after}`, async (signal) => {
    const { items, next } = await readNext<Follow>(`/registry/v2/follows/${group}`, 'follows', {
      after,
      size: 50,
      signal,
    })
    const named = items.map(async (one): Promise<Named> => ({ ...one, names: await namesOfRepo(one.repoUid) }))
    return { items: await Promise.all(named), next }
  })
  return (
    <Shown of={read}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{mirrorWords.noMirrors}</Empty>}
          {items.length > 0 && <MirrorTable items={items} />}
          <More next={next}>{(rest) => <Mirrors group={group} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}

function MirrorTable({ items }: { items: readonly Named[] }) {
  return (
    <Table
      caption={mirrorWords.mirrors}
      items={items}
      keyOf={({ repoUid }) => repoUid}
      columns={[
        {
          title: words.repository,
          isHead: true,
          cell: ({ names }) => (
            <a data-main href={`${paths.repo(names)}?view=mirror`}>
              <Breakable text={names.join('/')} />
            </a>
          ),
        },
        { title: mirrorWords.upstreamPath, cell: ({ path }) => <bdi>{path}</bdi> },
        { title: mirrorWords.mirrorMode, cell: ({ mode }) => mirrorWords.mirrorModes[mode] ?? mode },
        { title: words.tags, cell: ({ tagCount }) => tagCount },
        { title: words.state, cell: (one) => <MirrorState of={one} /> },
        { title: mirrorWords.nextCheck, cell: ({ dueTime }) => <Time at={dueTime} /> },
      ]}
    />
  )
}

/** State of the mirror, and its errors. */
export function MirrorState({ of: { state, problem } }: { of: Follow }) {
  const isFailed = state === 'STATE_FAILED'
  return (
    <>
      <Badge kind={isFailed ? 'bad' : 'plain'}>{mirrorWords.mirrorStates[state] ?? state}</Badge> <bdi>{problem}</bdi>
    </>
  )
}

const path = '/registry/v2/upstreams'
const sent = sendTo(path)

export const upstreams: Kind<Upstream> = {
  title: mirrorWords.upstreams,
  empty: mirrorWords.noUpstreams,
  path,
  member: 'upstreams',
  scopeParam: 'uidp.descendantsOf',
  nameOf: ({ name }) => name,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
    { title: mirrorWords.registryUrl, cell: ({ url, prefix }) => <bdi>{[url, prefix].filter(Boolean).join('/')}</bdi> },
    {
      title: mirrorWords.upstreamAccount,
      cell: ({ username, hasPassword }) => (
        <bdi>
          {username === '' ? words.anonymous : `${username}${hasPassword ? `, ${mirrorWords.hasPassword}` : ''}`}
        </bdi>
      ),
    },
  ],
  create: {
    summary: mirrorWords.newUpstream,
    button: words.create,
    fields: (one) => [
      { name: 'name', label: words.name, value: one?.name ?? '' },
      {
        name: 'url',
        label: mirrorWords.registryUrl,
        hint: mirrorWords.registryUrlHint,
        type: 'url',
        value: one?.url ?? '',
      },
      { name: 'prefix', label: mirrorWords.prefix, value: one?.prefix ?? '', isOptional: true },
      { name: 'username', label: mirrorWords.username, value: one?.username ?? '', isOptional: true },
      {
        name: 'password',
        label: mirrorWords.password,
        hint: mirrorWords.passwordHint,
        type: 'password',
        isOptional: true,
      },
      {
        name: 'allow',
        label: mirrorWords.allowedPaths,
        hint: mirrorWords.allPathsHint,
        type: 'lines',
        value: one?.allow.join('\n') ?? '',
        isOptional: true,
      },
      {
        name: 'requestsPerSecond',
        label: mirrorWords.perSecond,
        type: 'number',
        value: String(one?.requestsPerSecond || 5),
      },
      { name: 'makeRepos', label: mirrorWords.makeRepos, type: 'check', value: one?.makeRepos ? 'yes' : '' },
    ],
    send: sent.create(bodyOf),
  },
  update: sent.update(bodyOf),
  end: { button: words.delete, text: mirrorWords.deleteUpstreamText, send: sent.delete },
}

/** Omits an empty password, so that the server keeps the stored one. */
function bodyOf({ password, allow, requestsPerSecond, makeRepos, ...plain }: Values): object {
  return {
    ...plain,
    ...(password && { password }),
    ...{ allow: linesOf(allow), requestsPerSecond: Number(requestsPerSecond), makeRepos: makeRepos === 'yes' },
  }
}
