// A tag over time, drawn: a lane for each digest, a bar for as long as the tag pointed to it. The table below it is the truth,
// and whoever reads that misses nothing.
import { dayText, short } from '../../ui/text.tsx'
import { words } from '../../words.ts'
import type { Stay } from './moves.ts'
import { whenText } from './when.tsx'

const lane = { height: 26, gap: 4, left: 150, width: 900 }
const maxLanes = 12

type Props = {
  stays: readonly Stay[]
  at: number | undefined
  now: number
  onPick: (stay: Stay, isSecond: boolean) => void
}

export function Timeline({ stays, at, now, onPick }: Props) {
  const digests = [...new Set(stays.map(({ digest }) => digest).reverse())].slice(0, maxLanes)
  const shown = stays.filter(({ digest }) => digests.includes(digest))
  const [first] = shown
  if (!first) return null
  const [start, end] = [first.start, Math.max(now, at ?? 0)]
  const x = (time: number) => lane.left + ((time - start) / Math.max(1, end - start)) * (lane.width - lane.left - 60)
  const y = (digest: string) => 24 + digests.indexOf(digest) * (lane.height + lane.gap)
  const height = 30 + digests.length * (lane.height + lane.gap)
  return (
    <div class="scroll timeline" aria-hidden="true">
      <svg viewBox={`0 0 ${lane.width} ${height}`} width={lane.width} height={height}>
        <title>{words.timeline}</title>
        {marksOf(start, end).map((time) => (
          <g key={time}>
            <line class="mark" x1={x(time)} x2={x(time)} y1={18} y2={height} />
            <text class="when" x={x(time)} y={12}>
              {dayText(time)}
            </text>
          </g>
        ))}
        {digests.map((digest) => (
          <text key={digest} class="lane" x={0} y={y(digest) + 17}>
            {short(digest)}
          </text>
        ))}
        {shown.map((stay) => (
          <Bar key={stay.start} stay={stay} x={x} y={y(stay.digest)} end={end} onPick={onPick} />
        ))}
        {at !== undefined && <line class="at" x1={x(at)} x2={x(at)} y1={16} y2={height} />}
      </svg>
    </div>
  )
}

type BarProps = { stay: Stay; x: (time: number) => number; y: number; end: number; onPick: Props['onPick'] }

function Bar({ stay, x, y, end, onPick }: BarProps) {
  const { start, end: until, move } = stay
  const [from, to] = [x(start), x(until ?? end)]
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the table has the same as links
    <g onClick={(event) => onPick(stay, event.shiftKey)}>
      <rect
        class={until === undefined ? 'bar now' : 'bar'}
        x={from}
        y={y}
        width={Math.max(3, to - from)}
        height={lane.height}
      />
      {until === undefined && (
        <text class="when" x={to + 4} y={y + 17}>
          {words.now}
        </text>
      )}
      <title>{whenText(move)}</title>
    </g>
  )
}

/** Five days at most to write above the lanes. */
function marksOf(start: number, end: number): number[] {
  const step = (end - start) / 4
  return step <= 0 ? [start] : [0, 1, 2, 3, 4].map((i) => start + i * step)
}
