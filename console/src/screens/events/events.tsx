// Webhooks, which the API calls subscriptions, and the results of their deliveries.
import { useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { Group, Replayed, Subscription, SubscriptionSettings } from '../../data/types.ts'
import { toUniqueNames } from '../../data/unique-names.ts'
import { ActButton, DangerButton, Form, FormButton } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Note, Shown } from '../../ui/states.tsx'
import { Badge, Code, Time } from '../../ui/text.tsx'
import { eventWords } from '../../words/events.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { GroupFrame } from '../groups/group-frame.tsx'
import { Deliveries } from './deliveries.tsx'
import { LiveEvents } from './live.tsx'

const root = '/events/v2/subscriptions'

export function EventsScreen({ names }: { names: readonly string[] }) {
  return (
    <GroupFrame names={names} tail={['integrations', 'webhooks']}>
      {(group) => (
        <>
          <Subscriptions group={group} />
          <h2>{eventWords.live}</h2>
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
        {(page) => {
          if (page.items.length === 0) return <Empty>{eventWords.noWebhooks}</Empty>
          const names = toUniqueNames(page.items.map(({ sink }) => sink))
          return (
            <>
              <Cut of={page} />
              {page.items.map((one, i) => (
                <SubscriptionView key={one.uid} one={one} name={names[i]!} onGone={read.reload} />
              ))}
            </>
          )
        }}
      </Shown>
      {can('subscriptions.create', group.uid) && (
        <details>
          <summary>{eventWords.newWebhook}</summary>
          <Form
            submit={words.create}
            onSubmit={make}
            fields={[{ name: 'sink', label: eventWords.endpointUrl, hint: eventWords.endpointHint, type: 'url' }]}
          />
        </details>
      )}
    </>
  )
}

type ViewProps = { one: Subscription; name: string; onGone: () => void }

function SubscriptionView({ one, name, onGone }: ViewProps) {
  const [round, setRound] = useState(0)
  const read = useLoad(`settings ${one.uid}`, (signal) =>
    ask<SubscriptionSettings>('GET', `${root}/${one.uid}/settings`, { signal }),
  )
  const reload = () => {
    read.reload()
    // If the button is pressed before the last answer, the list is read once more after that answer.
    setRound((one) => one + 1)
  }
  return (
    <section aria-label={name}>
      <h2>
        <bdi>{name}</bdi>
      </h2>
      <Shown of={read}>
        {(settings) => (
          <>
            <Health settings={settings} />
            {can('subscriptions.update', one.uid) && (
              <Controls one={one} name={name} settings={settings} onDone={reload} />
            )}
            {can('subscriptions.delete', one.uid) && <Remove one={one} name={name} onGone={onGone} />}
          </>
        )}
      </Shown>
      <Deliveries uid={one.uid} name={name} round={round} onSent={reload} />
    </section>
  )
}

const healthOf = ({ paused, failures }: SubscriptionSettings) =>
  paused ? 'paused' : failures > 0 ? 'failing' : 'delivering'
const healthKinds = { paused: 'warn', failing: 'bad', delivering: 'good' } as const

/** State of a subscription. If deliveries are late, shows what to do. */
function Health({ settings }: { settings: SubscriptionSettings }) {
  const { pauseReason, blockedUntil, behindTime, waiting, givenUp } = settings
  const health = healthOf(settings)
  return (
    <>
      <p>
        <Badge kind={healthKinds[health]}>{eventWords[health]}</Badge> {eventWords.deliveryCounts(waiting, givenUp)}{' '}
        {pauseReason !== '' && <bdi>{pauseReason}</bdi>}
        {health === 'failing' && blockedUntil && (
          <>
            {eventWords.nextAttempt} <Time at={blockedUntil} />.
          </>
        )}
      </p>
      {behindTime && (
        <Note kind="warn">
          <p>
            <strong>{eventWords.behindSince}</strong> <Time at={behindTime} />. {eventWords.behindText}
          </p>
          <p>{eventWords.catchUp[health]}</p>
        </Note>
      )}
    </>
  )
}

function Remove({ one, name, onGone }: ViewProps) {
  return (
    <DangerButton
      button={words.delete}
      label={eventWords.deleteWebhookOf(name)}
      title={eventWords.deleteWebhookOf(name)}
      text={eventWords.deleteWebhookText}
      act={async () => {
        await ask('DELETE', `${root}/${one.uid}`)
        onGone()
      }}
    />
  )
}

type ControlsProps = { one: Subscription; name: string; settings: SubscriptionSettings; onDone: () => void }

function Controls({ one, name, settings, onDone }: ControlsProps) {
  const [secret, setSecret] = useState<string>()
  const callAction = (verb: string) => async () => {
    await ask('POST', `${root}/${one.uid}:${verb}`, { body: {} })
    onDone()
  }
  return (
    <>
      <ActButton act={callAction(settings.paused ? 'resume' : 'pause')}>
        {settings.paused ? eventWords.resume : eventWords.pause}
      </ActButton>{' '}
      <ActButton act={callAction('sendTest')}>{eventWords.sendTest}</ActButton>{' '}
      <ActButton
        act={async () => {
          const answer = await ask<{ secret?: string }>('POST', `${root}/${one.uid}:rotateSecret`, { body: {} })
          setSecret(answer.secret ?? '')
        }}
      >
        {eventWords.rotateSecret}
      </ActButton>{' '}
      <RedeliverRange one={one} name={name} since={settings.behindTime} onDone={onDone} />
      {secret !== undefined && (
        <Note kind="good">
          <p>{eventWords.secretOnce}</p>
          <Code text={secret} label={eventWords.copySecret} />
        </Note>
      )}
    </>
  )
}

type ReplayProps = { one: Subscription; name: string; since: string; onDone: () => void }

type Sent = { count: number; next: string; body: { startTime?: string; endTime: string } }

/** Redelivers the events of a time range, including skipped events. If the queue is full, offers a button for the rest. */
function RedeliverRange({ one, name, since, onDone }: ReplayProps) {
  const [sent, setSent] = useState<Sent>()
  const time = (typed: string | undefined) => (typed ? new Date(`${typed}Z`).toISOString() : undefined)
  const send = async (from: Sent) => {
    let { count, next } = from
    try {
      do {
        const body = { ...from.body, pageToken: next }
        const answer = await ask<Replayed>('POST', `${root}/${one.uid}:replay`, { body })
        count += Number(answer.eventCount)
        next = answer.nextPageToken
        setSent({ ...from, count, next })
      } while (next !== '')
    } catch (error) {
      // If an error comes after some events were queued, shows their number and offers the rest. If none were queued, the action
      // has failed.
      if (count === from.count) throw error
    }
    onDone()
  }
  return (
    <>
      <FormButton
        button={eventWords.redeliverRange}
        label={eventWords.redeliverRangeTo(name)}
        fields={[
          { name: 'from', label: tagWords.fromUtc, type: 'datetime-local', value: since ? since.slice(0, 16) : '' },
          { name: 'to', label: tagWords.toUtc, hint: eventWords.untilNow, type: 'datetime-local', isOptional: true },
        ]}
        act={async ({ from, to }) => {
          const [startTime, endTime] = [time(from), time(to) ?? new Date().toISOString()]
          await send({ count: 0, next: '', body: { ...(startTime ? { startTime } : {}), endTime } })
        }}
      />{' '}
      {sent !== undefined && (
        <Note kind={sent.next === '' ? 'good' : 'warn'}>
          {eventWords.sentAgain(sent.count)}
          {sent.next !== '' && (
            <>
              {' '}
              {eventWords.moreToSend} <ActButton act={() => send(sent)}>{eventWords.sendRest}</ActButton>
            </>
          )}
        </Note>
      )}
    </>
  )
}
