// Who is told what happens here: subscriptions, and what became of each delivery.
import { useState } from 'preact/hooks'
import { may } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { Delivery, Group, Subscription, SubscriptionSettings } from '../../data/types.ts'
import { ActButton, DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Code, Time } from '../../ui/text.tsx'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { LiveEvents } from './live.tsx'

const root = '/events/v2/subscriptions'

export function EventsScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} view="events">
      {(group) => (
        <>
          <Subscriptions group={group} />
          <h2>{words.live}</h2>
          <LiveEvents group={group.uid} />
        </>
      )}
    </GroupFrame>
  )
}

function Subscriptions({ group }: { group: Group }) {
  const read = useLoad(`subscriptions ${group.uid}`, (signal) =>
    readPage<Subscription>(root, 'subscriptions', { size: 100, query: { 'uidp.childrenOf': group.uid }, signal }),
  )
  const make = async ({ sink }: Record<string, string>) => {
    await ask('POST', `${root}/${group.uid}`, { body: { sink } })
    read.reload()
  }
  return (
    <>
      <Shown of={read}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>{words.noSubscriptions}</Empty>
          ) : (
            items.map((one) => <SubscriptionView key={one.uid} one={one} onGone={read.reload} />)
          )
        }
      </Shown>
      {may('subscriptions.create', group.uid) && (
        <details>
          <summary>{words.newSubscription}</summary>
          <Form
            submit={words.create}
            onSubmit={make}
            fields={[{ name: 'sink', label: words.sink, hint: words.sinkHint, type: 'url' }]}
          />
        </details>
      )}
    </>
  )
}

function SubscriptionView({ one, onGone }: { one: Subscription; onGone: () => void }) {
  const read = useLoad(`settings ${one.uid}`, (signal) =>
    ask<SubscriptionSettings>('GET', `${root}/${one.uid}/settings`, { signal }),
  )
  return (
    <section aria-label={one.sink}>
      <h2>
        <bdi>{one.sink}</bdi>
      </h2>
      <Shown of={read}>
        {(settings) => (
          <>
            <p>
              <Badge kind={settings.paused ? 'warn' : settings.failures > 0 ? 'bad' : 'good'}>
                {settings.paused ? words.paused : settings.failures > 0 ? words.failing : words.delivering}
              </Badge>{' '}
              {words.deliveryCounts(settings.waiting, settings.givenUp)}{' '}
              {settings.pauseReason !== '' && <bdi>{settings.pauseReason}</bdi>}
            </p>
            {may('subscriptions.update', one.uid) && <Controls one={one} settings={settings} onDone={read.reload} />}
            {may('subscriptions.delete', one.uid) && <Remove one={one} onGone={onGone} />}
          </>
        )}
      </Shown>
      <Deliveries uid={one.uid} />
    </section>
  )
}

function Remove({ one, onGone }: { one: Subscription; onGone: () => void }) {
  return (
    <DangerButton
      button={words.delete}
      label={words.deleteSubscriptionOf(one.sink)}
      title={words.deleteSubscriptionOf(one.sink)}
      text={words.deleteSubscriptionText}
      act={async () => {
        await ask('DELETE', `${root}/${one.uid}`)
        onGone()
      }}
    />
  )
}

type ControlsProps = { one: Subscription; settings: SubscriptionSettings; onDone: () => void }

function Controls({ one, settings, onDone }: ControlsProps) {
  const [secret, setSecret] = useState<string>()
  const tell = (verb: string) => async () => {
    await ask('POST', `${root}/${one.uid}:${verb}`, { body: {} })
    onDone()
  }
  return (
    <>
      <ActButton act={tell(settings.paused ? 'resume' : 'pause')}>
        {settings.paused ? words.resume : words.pause}
      </ActButton>{' '}
      <ActButton act={tell('sendTest')}>{words.sendTest}</ActButton>{' '}
      <ActButton
        act={async () => {
          const answer = await ask<{ secret?: string }>('POST', `${root}/${one.uid}:rotateSecret`, { body: {} })
          setSecret(answer.secret ?? '')
        }}
      >
        {words.newSecret}
      </ActButton>{' '}
      {secret !== undefined && (
        <Note kind="good">
          <p>{words.secretOnce}</p>
          <Code text={secret} label={words.copySecret} />
        </Note>
      )}
    </>
  )
}

const size = 50
const states = ['', 'WAITING', 'DELIVERED', 'GIVEN_UP'] as const

function Deliveries({ uid }: { uid: string }) {
  const [state, setState] = useState<(typeof states)[number]>('')
  const read = useLoad(`deliveries ${uid} ${state}`, (signal) => {
    const query = { state, orderBy: 'uid desc' }
    return readPage<Delivery>(`${root}/${uid}/deliveries`, 'deliveries', { size, query, signal })
  })
  const again = (one: string) => async () => {
    await ask('POST', `${root}/${uid}:redeliver`, { body: { deliveryUids: [one] } })
    read.reload()
  }
  return (
    <>
      <label>
        {words.deliveriesThat}{' '}
        <select value={state} onChange={(event) => setState((event.target as HTMLSelectElement).value as typeof state)}>
          {states.map((one) => (
            <option key={one} value={one}>
              {words.deliveryStates[one]}
            </option>
          ))}
        </select>
      </label>
      <Shown of={read}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>{words.noDeliveries}</Empty>
          ) : (
            <Table
              caption={words.deliveries}
              items={items}
              keyOf={(one) => one.uid}
              columns={deliveryColumns(may('subscriptions.update', uid) ? again : undefined)}
            />
          )
        }
      </Shown>
    </>
  )
}

type Again = (uid: string) => () => Promise<void>

function deliveryColumns(again: Again | undefined): Column<Delivery>[] {
  const columns: Column<Delivery>[] = [
    { title: words.event, isHead: true, cell: ({ type }) => <bdi>{type}</bdi> },
    {
      title: words.state,
      cell: ({ state }) => (
        <Badge kind={state === 'DELIVERED' ? 'good' : state === 'GIVEN_UP' ? 'bad' : 'warn'}>
          {words.deliveryStates[state as (typeof states)[number]] ?? state}
        </Badge>
      ),
    },
    { title: words.attempts, cell: ({ attemptCount }) => attemptCount },
    { title: words.lastAnswer, cell: ({ lastAttempt }) => <bdi>{lastAttempt?.result ?? '–'}</bdi> },
    { title: words.when, cell: ({ createTime }) => <Time at={createTime} /> },
  ]
  if (!again) return columns
  const send: Column<Delivery> = {
    title: words.actions,
    cell: ({ uid, state, createTime }) =>
      state !== 'WAITING' && (
        <ActButton label={words.sendAgainOf(createTime)} act={again(uid)}>
          {words.sendAgain}
        </ActButton>
      ),
  }
  return [...columns, send]
}
