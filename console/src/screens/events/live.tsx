// Live events, which are shown until the user stops them or leaves the screen.
import { useEffect, useState } from 'preact/hooks'
import { follow } from '../../data/api.ts'
import { Empty, Problem } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/text.tsx'
import { eventWords } from '../../words/events.ts'
import { words } from '../../words.ts'

type LiveEvent = { id: string; type: string; subject: string; time: string }
const most = 100

export function LiveEvents({ group }: { group: string }) {
  const [isOn, setOn] = useState(false)
  return (
    <>
      <button type="button" aria-pressed={isOn} onClick={() => setOn(!isOn)}>
        {isOn ? eventWords.stopLive : eventWords.showLive}
      </button>
      {isOn && <LiveList group={group} />}
    </>
  )
}

function LiveList({ group }: { group: string }) {
  const [events, setEvents] = useState<readonly LiveEvent[]>([])
  const [error, setError] = useState<unknown>()
  useEffect(() => {
    const leave = new AbortController()
    const add = (one: LiveEvent) => setEvents((old) => [one, ...old].slice(0, most))
    read(group, leave.signal, add).catch((cause: unknown) => !leave.signal.aborted && setError(cause))
    return () => leave.abort()
  }, [group])
  return (
    <div aria-live="polite">
      {error !== undefined && <Problem error={error} />}
      {events.length === 0 && error === undefined && <Empty>{eventWords.noLiveEvents}</Empty>}
      {events.length > 0 && (
        <Table
          caption={eventWords.live}
          items={events}
          keyOf={({ id }) => id}
          columns={[
            { title: words.event, isHead: true, cell: ({ type }) => <bdi>{type}</bdi> },
            { title: eventWords.subject, cell: ({ subject }) => <bdi>{subject}</bdi> },
            { title: words.time, cell: ({ time }) => <Time at={time} /> },
          ]}
        />
      )}
    </div>
  )
}

const mostText = 1_000_000

async function read(group: string, signal: AbortSignal, add: (one: LiveEvent) => void): Promise<void> {
  const body = await follow('/events/v2/stream', { group }, signal)
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    text += decoder.decode(value, { stream: true })
    const parts = text.split('\n\n')
    // Limits the memory for an event whose end does not arrive.
    text = parts.pop()!.slice(-mostText)
    for (const part of parts) {
      const line = part.split('\n').find((one) => one.startsWith('data: '))
      if (line && !part.startsWith('event: ')) add(parseEvent(line.slice('data: '.length)))
    }
  }
}

function parseEvent(json: string): LiveEvent {
  const { id, attributes } = JSON.parse(json) as { id: string; attributes: Record<string, string> }
  return { id, type: attributes.type ?? '', subject: attributes.subject ?? '', time: attributes.time ?? '' }
}
