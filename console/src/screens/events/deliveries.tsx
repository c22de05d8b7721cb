// Deliveries of a subscription and their results, newest first.
import { useEffect, useRef, useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readNext } from '../../data/list.ts'
import type { Delivery } from '../../data/types.ts'
import { ActButton, DialogButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Time, timeText } from '../../ui/text.tsx'
import { eventWords } from '../../words/events.ts'
import { numbers, words } from '../../words.ts'

const root = '/events/v2/subscriptions'
const states = ['', 'WAITING', 'DELIVERED', 'GIVEN_UP'] as const
type State = (typeof states)[number]

/** A new value of `round` reloads the list. Callers change it in `onSent`, for example. */
type Props = { uid: string; name: string; round: number; onSent: () => void }

export function Deliveries({ uid, name, round, onSent }: Props) {
  const [state, setState] = useState<State>('')
  return (
    <>
      <label>
        {eventWords.deliveryStatus}{' '}
        <select value={state} onChange={(event) => setState((event.target as HTMLSelectElement).value as State)}>
          {states.map((one) => (
            <option key={one} value={one}>
              {eventWords.deliveryStates[one]}
            </option>
          ))}
        </select>
      </label>
      <DeliveryList key={state} uid={uid} name={name} state={state} round={round} onSent={onSent} />
    </>
  )
}

type ListProps = Props & { state: State; after?: string }

function DeliveryList({ uid, name, state, round, onSent, after = '' }: ListProps) {
  const read = useLoad(`deliveries ${uid} ${state} ${after}`, (signal) => {
    const query = { state, orderBy: 'uid desc' }
    return readNext<Delivery>(`${root}/${uid}/deliveries`, 'deliveries', { after, size: 50, query, signal })
  })
  const seen = useRef(round)
  useEffect(() => {
    if (round === seen.current) return
    seen.current = round
    read.reload()
  }, [round])
  const again = (one: string) => async () => {
    await ask('POST', `${root}/${uid}:redeliver`, { body: { deliveryUids: [one] } })
    onSent()
  }
  return (
    <Shown of={read}>
      {({ items, next }) => (
        <>
          {items.length === 0 && <Empty>{eventWords.noDeliveries}</Empty>}
          {items.length > 0 && (
            <Table
              caption={eventWords.deliveriesTo(name)}
              items={items}
              keyOf={(one) => one.uid}
              columns={columnsFor(can('subscriptions.update', uid) ? again : undefined)}
            />
          )}
          <More next={next}>
            {(rest) => <DeliveryList uid={uid} name={name} state={state} round={round} onSent={onSent} after={rest} />}
          </More>
        </>
      )}
    </Shown>
  )
}

type Attempt = Delivery['attempts'][number]

/** Status code and result of an attempt. */
function resultOf({ status, result }: Attempt): string {
  const text = eventWords.attemptResults[result] ?? result
  return status === 0 ? text : `${status}, ${text}`
}

/** Attempts of a delivery, the latest first. */
function Attempts({ uid }: { uid: string }) {
  const read = useLoad(`delivery ${uid}`, (signal) => ask<Delivery>('GET', `/events/v2/deliveries/${uid}`, { signal }))
  return (
    <Shown of={read}>
      {({ attempts }) =>
        attempts.length === 0 ? (
          <Empty>{eventWords.noAttempts}</Empty>
        ) : (
          <Table
            caption={eventWords.attempts}
            items={attempts.toReversed()}
            keyOf={({ createTime }) => createTime}
            columns={[
              { title: words.time, isHead: true, cell: ({ createTime }) => <Time at={createTime} /> },
              { title: words.result, cell: resultOf },
              {
                title: eventWords.duration,
                isNumber: true,
                cell: ({ durationMs }) => eventWords.milliseconds(durationMs),
              },
            ]}
          />
        )
      }
    </Shown>
  )
}

type Again = (uid: string) => () => Promise<void>

function columnsFor(again: Again | undefined): Column<Delivery>[] {
  const columns: Column<Delivery>[] = [
    { title: words.event, isHead: true, cell: ({ type }) => <bdi>{type}</bdi> },
    {
      title: words.state,
      cell: ({ state }) => (
        <Badge kind={state === 'DELIVERED' ? 'good' : state === 'GIVEN_UP' ? 'bad' : 'warn'}>
          {eventWords.deliveryStates[state as State] ?? state}
        </Badge>
      ),
    },
    {
      title: eventWords.attempts,
      isNumber: true,
      cell: ({ uid, attemptCount, createTime }) =>
        attemptCount === 0 ? (
          <span class="dim">0</span>
        ) : (
          <DialogButton button={numbers(attemptCount)} title={eventWords.attemptsOf(timeText(createTime))}>
            {() => <Attempts uid={uid} />}
          </DialogButton>
        ),
    },
    { title: eventWords.lastResponse, cell: ({ lastAttempt }) => (lastAttempt ? resultOf(lastAttempt) : '–') },
    {
      title: eventWords.duration,
      isNumber: true,
      cell: ({ lastAttempt }) => (lastAttempt ? eventWords.milliseconds(lastAttempt.durationMs) : '–'),
    },
    { title: words.time, cell: ({ createTime }) => <Time at={createTime} /> },
  ]
  if (!again) return columns
  const send: Column<Delivery> = {
    title: words.actions,
    cell: ({ uid, state, createTime }) =>
      state !== 'WAITING' && (
        <ActButton label={eventWords.redeliverOf(createTime)} act={again(uid)}>
          {eventWords.redeliver}
        </ActButton>
      ),
  }
  return [...columns, send]
}
