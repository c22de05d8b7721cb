// Deletion plans of retention rules. Users create and review them. To apply a plan, users type the name of the group.
import { useEffect } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readNext } from '../../data/list.ts'
import { namesOfRepo, parentOf, pathNamesOf } from '../../data/names.ts'
import { readScoped, whereOf } from '../../data/scoped.ts'
import type { Plan, PlannedDeletion } from '../../data/types.ts'
import { ActButton, DangerButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Breakable, bytes, Digest, Time } from '../../ui/text.tsx'
import { retentionWords } from '../../words/retention.ts'
import { words } from '../../words.ts'

const path = '/registry/v2/retentionPlans'
const isRunning = ({ state }: Plan): boolean => state === 'PLANNING' || state === 'APPLYING'
const pollMs = 1500

/** Plans of this scope and below it. `chosen` is the plan that is shown. */
export function Plans({ at, chosen }: { at: string; chosen: string }) {
  const read = useLoad(`plans ${at}`, async (signal) => {
    const { items } = await readScoped<Plan>(path, 'retentionPlans', { scope: at, signal })
    const plans = items.filter(({ uid }) => whereOf(uid, at) !== 'above')
    const named = plans.map(async (plan) => ({ ...plan, names: (await pathNamesOf(parentOf(plan.uid))).names }))
    return (await Promise.all(named)).sort((a, b) => (a.createTime < b.createTime ? 1 : -1))
  })
  // Waits for each answer before the next request, so a slow answer is not aborted.
  const isNext = !read.isBusy && (read.data?.some(isRunning) ?? false)
  useEffect(() => {
    if (!isNext) return
    const timer = setTimeout(read.reload, pollMs)
    return () => clearTimeout(timer)
  }, [isNext])
  const plan = read.data?.find(({ uid }) => uid === chosen)
  const make = async () => {
    await ask('POST', `${path}/${at}`, { body: {} })
    read.reload()
  }
  return (
    <>
      <h2>{retentionWords.plans}</h2>
      <p class="dim">{retentionWords.plansText}</p>
      {can('registry.settings.update', at) && (
        <p>
          <ActButton act={make}>{retentionWords.createPlan}</ActButton>
        </p>
      )}
      <Shown of={read}>
        {(plans) =>
          plans.length === 0 ? (
            <Empty>{retentionWords.noPlans}</Empty>
          ) : (
            <Table
              caption={retentionWords.plans}
              columns={columnsFor(read.reload)}
              items={plans}
              keyOf={({ uid }) => uid}
              classOf={({ uid }) => (uid === chosen ? 'then' : '')}
            />
          )
        }
      </Shown>
      {chosen !== '' && read.data && !plan && <Empty>{retentionWords.noSuchPlan}</Empty>}
      {plan && plan.state !== 'PLANNING' && (
        <section>
          <h3>{retentionWords.plannedDeletions}</h3>
          {plan.truncated && <Note kind="warn">{retentionWords.planCut}</Note>}
          <Deletions key={plan.state} plan={plan.uid} state={plan.state} after="" />
        </section>
      )}
    </>
  )
}

type Named = Plan & { names: readonly string[] }

const columnsFor = (reload: () => void): Column<Named>[] => [
  {
    title: words.createdAt,
    isHead: true,
    cell: ({ uid, createTime }) => (
      <a data-main href={paths.with(here(), { plan: uid })}>
        <Time at={createTime} />
      </a>
    ),
  },
  { title: words.scope, cell: ({ names }) => <Breakable text={names.join('/')} /> },
  { title: words.state, cell: ({ state }) => <Badge kind={kinds[state]}>{retentionWords.planStates[state]}</Badge> },
  { title: retentionWords.deletes, cell: ({ manifests, bytes: size }) => amount(manifests, size) },
  {
    title: retentionWords.wouldDelete,
    cell: ({ dryRunManifests, dryRunBytes }) => amount(dryRunManifests, dryRunBytes),
  },
  {
    title: words.result,
    cell: ({ state, deleted, left }) =>
      state === 'APPLYING' || state === 'APPLIED'
        ? retentionWords.deletedAndSkipped(Number(deleted), Number(left))
        : '–',
  },
  {
    title: words.actions,
    cell: (plan) => (plan.state === 'READY' && canApply(plan.uid) ? <Apply plan={plan} onDone={reload} /> : null),
  },
]

const kinds: Record<Plan['state'], 'plain' | 'warn' | 'good'> = {
  STATE_UNSPECIFIED: 'plain',
  PLANNING: 'plain',
  READY: 'warn',
  APPLYING: 'plain',
  APPLIED: 'good',
}

const canApply = (uid: string): boolean => can('registry.settings.update', uid) && can('repo.delete', uid)
const amount = (manifests: string, size: string): string =>
  retentionWords.manifestsOf(Number(manifests), bytes(Number(size)))

function Apply({ plan: { uid, names, manifests, bytes: size }, onDone }: { plan: Named; onDone: () => void }) {
  if (Number(manifests) === 0) return null
  return (
    <DangerButton
      button={retentionWords.applyPlan}
      label={retentionWords.applyPlanOf(names.join('/'))}
      title={retentionWords.applyPlanOf(names.join('/'))}
      text={retentionWords.applyPlanText(amount(manifests, size))}
      mustType={names.at(-1)!}
      act={async () => {
        await ask('POST', `${path}/${uid}:apply`, { body: {} })
        onDone()
      }}
    />
  )
}

type NamedDeletion = PlannedDeletion & { names: readonly string[] }

function Deletions({ plan, state, after }: { plan: string; state: Plan['state']; after: string }) {
  const read = useLoad(`planned ${plan} ${state} ${after}`, async (signal) => {
    const page = await readNext<PlannedDeletion>(`${path}/${plan}/deletions`, 'deletions', { after, size: 100, signal })
    const named = page.items.map(
      async (one): Promise<NamedDeletion> => ({ ...one, names: await namesOfRepo(one.repoUid) }),
    )
    return { items: await Promise.all(named), next: page.next }
  })
  return (
    <Shown of={read}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{retentionWords.nothingPlanned}</Empty>}
          {items.length > 0 && (
            <Table
              caption={retentionWords.plannedDeletions}
              columns={deletionColumns}
              items={items}
              keyOf={({ repoUid, digest }) => `${repoUid} ${digest}`}
            />
          )}
          <More next={next}>{(rest) => <Deletions plan={plan} state={state} after={rest} />}</More>
        </>
      )}
    </Shown>
  )
}

const deletionColumns: Column<NamedDeletion>[] = [
  {
    title: words.digest,
    isHead: true,
    cell: ({ names, digest }) => <Digest of={digest} href={paths.digest(names, digest)} />,
  },
  { title: words.repository, cell: ({ names }) => <Breakable text={names.join('/')} /> },
  {
    title: words.reason,
    cell: ({ why, until, partOf, names }) => (
      <>
        {retentionWords.deletionReasons[why]} {until && <Time at={until} />}
        {partOf !== '' && <Digest of={partOf} href={paths.digest(names, partOf)} />}
      </>
    ),
  },
  { title: words.size, cell: ({ bytes: size }) => bytes(Number(size)) },
  {
    title: words.result,
    cell: ({ outcome = 'OUTCOME_UNSPECIFIED', dryRun }) =>
      dryRun ? <Badge kind="warn">{retentionWords.dryRunDeletion}</Badge> : retentionWords.deletionResults[outcome],
  },
]
