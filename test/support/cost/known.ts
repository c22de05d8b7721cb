// Inputs that exceed a limit today, each with the reason. An entry that no longer exceeds a limit is reported.

export type Known = {
  /** Matches `TARGET by CALLER: SHAPE`. */
  input: RegExp
  reason: string
}

export const known: readonly Known[] = [
  {
    input: /^grpc \S+ by \w+: unknown fields/,
    reason: 'Unknown fields over gRPC are kept, and only their bytes are limited',
  },
  {
    input: /^grpc \S+ by owner: .*: \d{5,} (?:elements|entries)$/,
    reason: 'The number of elements over gRPC has no limit but that of the bytes',
  },
  {
    input: /^(?:rest|grpc) pinfold\.control\.\S+ by owner: /,
    reason: 'Only the operator may call these methods; imports take up to 600,000 members in one request',
  },
]
