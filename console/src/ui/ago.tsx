// Time relative to now, with the exact time in its tooltip.
import { isUtc } from '../app/settings.ts'
import { relativeText } from './relative-time.ts'
import { timeText } from './text.tsx'

export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={timeText(at)}>
      {relativeText(at, Date.now(), isUtc.value ? 'UTC' : undefined)}
    </time>
  )
}
