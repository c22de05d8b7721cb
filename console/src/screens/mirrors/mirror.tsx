// Upstream of a repository, the state of the mirror, and the form for its settings.
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { readScoped } from '../../data/scoped.ts'
import type { Follow, Upstream } from '../../data/types.ts'
import { ActButton, DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Time } from '../../ui/text.tsx'
import { mirrorWords } from '../../words/mirrors.ts'
import { ruleWords } from '../../words/rules.ts'
import { words } from '../../words.ts'
import { linesOf } from '../rules/scoped-list.tsx'
import { MirrorState } from './mirrors.tsx'

const pathOf = (repo: string): string => `/registry/v2/repos/${repo}/follow`

export function RepoMirror({ repo }: { repo: string }) {
  const read = useLoad(`follow ${repo}`, (signal) =>
    ask<Follow>('GET', pathOf(repo), { signal }).then(
      (follow) => ({ follow }),
      (error: unknown) => {
        if (error instanceof Refusal && error.status === 404) return { follow: undefined }
        throw error
      },
    ),
  )
  const isMine = can('registry.settings.update', repo)
  return (
    <Shown of={read}>
      {({ follow }) => (
        <>
          {follow ? (
            <MirrorDetails of={follow} isMine={isMine} onChange={read.reload} />
          ) : (
            <Empty>{mirrorWords.notMirror}</Empty>
          )}
          {isMine && <MirrorForm repo={repo} now={follow} onMade={read.reload} />}
        </>
      )}
    </Shown>
  )
}

function MirrorDetails({ of, isMine, onChange }: { of: Follow; isMine: boolean; onChange: () => void }) {
  const { repoUid, path, mode, tags, interval, tagCount, dueTime, stateTime, historyProblem } = of
  // The API omits an enum that has its zero value.
  const { history = 'HISTORY_UNSPECIFIED' } = of
  const check = async () => {
    await ask('POST', `${pathOf(repoUid)}:check`, { body: {} })
    onChange()
  }
  const facts = [
    [mirrorWords.upstreamPath, <bdi>{path}</bdi>],
    [words.state, <MirrorState of={of} />],
    [mirrorWords.stateSince, <Time at={stateTime} />],
    [mirrorWords.nextCheck, <Time at={dueTime} />],
    [mirrorWords.mirrorMode, mirrorWords.mirrorModes[mode] ?? mode],
    [mirrorWords.mirroredTags, <bdi>{tags.join(', ') || ruleWords.allTags}</bdi>],
    [mirrorWords.tagCount, tagCount],
    [mirrorWords.interval, mirrorWords.minutes(minutesOf(interval))],
    [
      mirrorWords.upstreamHistory,
      <>
        {mirrorWords.upstreamHistories[history] ?? history} <bdi>{historyProblem}</bdi>
      </>,
    ],
  ] as const
  return (
    <>
      <dl>
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {isMine && (
        <p>
          <ActButton act={check}>{mirrorWords.checkNow}</ActButton>{' '}
          <DangerButton
            button={mirrorWords.stopMirroring}
            label={mirrorWords.stopMirroringOf(path)}
            title={mirrorWords.stopMirroringOf(path)}
            text={mirrorWords.stopMirroringText}
            act={async () => {
              await ask('DELETE', pathOf(repoUid))
              onChange()
            }}
          />
        </p>
      )}
    </>
  )
}

/** Durations of the API are seconds with an `s` at the end. */
const secondsOf = (duration: string | undefined): number => Number.parseFloat(duration ?? '0')
const minutesOf = (duration: string | undefined): number => Math.round(secondsOf(duration) / 60)
const daysOf = (duration: string | undefined): number => Math.round(secondsOf(duration) / 86_400)

type Props = { repo: string; now: Follow | undefined; onMade: () => void }

function MirrorForm({ repo, now, onMade }: Props) {
  const known = useLoad(`upstreams for ${repo}`, (signal) =>
    readScoped<Upstream>('/registry/v2/upstreams', 'upstreams', {
      scope: repo,
      scopeParam: 'uidp.descendantsOf',
      signal,
    }),
  )
  const follow = async ({ upstreamUid, path, mode, tags, interval, staleFor }: Record<string, string>) => {
    const times = {
      interval: `${Number(interval) * 60}s`,
      ...(staleFor && { staleFor: `${Number(staleFor) * 86_400}s` }),
    }
    // The form has no field for platforms, which only a command sets. So their current value is sent.
    const platforms = mode === 'MODE_FULL' ? (now?.platforms ?? []) : []
    await ask('POST', pathOf(repo), { body: { upstreamUid, path, mode, tags: linesOf(tags), platforms, ...times } })
    onMade()
  }
  return (
    <details>
      <summary>{now ? mirrorWords.editMirror : mirrorWords.newMirror}</summary>
      <p>{mirrorWords.mirrorHint}</p>
      <Shown of={known}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>{mirrorWords.noUpstreamToMirror}</Empty>
          ) : (
            <Form
              key={now?.updateTime}
              submit={mirrorWords.saveMirror}
              onSubmit={follow}
              fields={fieldsOf(items, now)}
            />
          )
        }
      </Shown>
    </details>
  )
}

const modes = ['MODE_WATCH', 'MODE_ON_DEMAND', 'MODE_FULL'] as const

const fieldsOf = (items: readonly Upstream[], now: Follow | undefined) =>
  [
    {
      name: 'upstreamUid',
      label: mirrorWords.upstream,
      type: 'select',
      value: now?.upstreamUid ?? items[0]?.uid,
      options: items.map(({ uid, name, url }) => ({ value: uid, label: `${name} (${url})` })),
    },
    { name: 'path', label: mirrorWords.upstreamPath, value: now?.path ?? '' },
    {
      name: 'mode',
      label: mirrorWords.mirrorMode,
      type: 'select',
      value: now?.mode ?? 'MODE_WATCH',
      options: modes.map((value) => ({ value, label: mirrorWords.mirrorModes[value]! })),
    },
    {
      name: 'tags',
      label: mirrorWords.mirroredTags,
      hint: mirrorWords.mirroredTagsHint,
      type: 'lines',
      value: now?.tags.join('\n') ?? '',
      isOptional: true,
    },
    {
      name: 'interval',
      label: mirrorWords.intervalMinutes,
      type: 'number',
      value: String(minutesOf(now?.interval) || 60),
    },
    {
      name: 'staleFor',
      label: mirrorWords.staleDays,
      type: 'number',
      value: String(daysOf(now?.staleFor) || 30),
      isOptional: true,
    },
  ] as const
