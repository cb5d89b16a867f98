import { Plural, Trans, useLingui } from '@lingui/react/macro'
import { Button, Progress, Skeleton, Tooltip } from '@mantine/core'
import { useElementSize } from '@mantine/hooks'
import { useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import type { Server, DiskUsage as Usage } from '../../../../../../src/sdk/index.ts'
import { useUsage } from '../../../../api/files.ts'
import { Empty } from '../../../../components/empty.tsx'
import { Moment } from '../../../../components/moment.tsx'
import { Problem } from '../../../../components/problem.tsx'
import { formatBytes } from '../../../../i18n/format.ts'
import { hrefOf } from '../paths.ts'
import css from './disk-usage.module.css'
import { type Measured, measure } from './measure.ts'
import { type Tile, tilesOf } from './treemap.ts'

/** WCAG 2.5.8. */
const TARGET_PX = 24
/** Smaller than that is not drawn: nobody could see or hit it. */
const SHOWN_AT_MOST = 60

export default function DiskUsage({ server, directory }: { server: Server; directory: string }) {
  const { t } = useLingui()
  const { data: usage, refetch } = useUsage(server.id)
  const [round, setRound] = useState(0)
  const { measured, error, isDone, beganAt } = useMeasured(server.id, directory, round)
  const countAgain = () => {
    setRound(round + 1)
    void refetch()
  }
  const isEmpty = isDone && measured.every(({ sizeBytes }) => sizeBytes === 0)
  return (
    <section className="stack" aria-label={t`Disk usage`}>
      {usage && <Quota usage={usage} />}
      {error !== null && <Problem error={error} />}
      {isEmpty ? (
        <div className="card">
          <Empty icon="tiles" title={t`Nothing here takes any room`} />
        </div>
      ) : (
        <Treemap server={server} measured={measured} />
      )}
      <p className="small faint" role="status">
        {!isDone && error === null && <Trans>Counting…</Trans>}
        {isDone && measured.some(({ isPartial }) => isPartial) && (
          <Trans>There is too much here to count it all. Open a folder to see it in full.</Trans>
        )}
        {isDone && (
          <>
            {' '}
            <Trans>
              Counted <Moment at={beganAt} />.
            </Trans>{' '}
            <Button variant="subtle" size="compact-xs" onClick={countAgain}>
              <Trans>Count again</Trans>
            </Button>
          </>
        )}
      </p>
    </section>
  )
}

/** Counted anew in each round. */
function useMeasured(serverId: string, directory: string, round: number) {
  const [state, setState] = useState<{ measured: Measured[]; error: unknown; isDone: boolean; beganAt: string }>({
    measured: [],
    error: null,
    isDone: false,
    beganAt: '',
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round counts again
  useEffect(() => {
    const left = new AbortController()
    setState({ measured: [], error: null, isDone: false, beganAt: new Date().toISOString() })
    measure(
      serverId,
      directory,
      (measured) => !left.signal.aborted && setState((before) => ({ ...before, measured })),
      left.signal,
    ).then(
      () => setState((before) => ({ ...before, isDone: true })),
      (error: unknown) => !left.signal.aborted && setState((before) => ({ ...before, error })),
    )
    return () => left.abort()
  }, [serverId, directory, round])
  return state
}

function Quota({ usage: { usedBytes, trashBytes, quotaBytes } }: { usage: Usage }) {
  const { t, i18n } = useLingui()
  const size = (bytes: number) => formatBytes(bytes, i18n.locale)
  const files = usedBytes - trashBytes
  return (
    <div>
      <p className="soft">
        {quotaBytes === null ? (
          <Trans>
            Files take {size(files)}, and the trash {size(trashBytes)}.
          </Trans>
        ) : (
          <Trans>
            Files take {size(files)}, and the trash {size(trashBytes)}, of {size(quotaBytes)}.
          </Trans>
        )}
      </p>
      {quotaBytes !== null && quotaBytes > 0 && (
        <Progress.Root size="md" mt={6}>
          <Progress.Section value={(files / quotaBytes) * 100} aria-label={t`Files`} />
          <Progress.Section value={(trashBytes / quotaBytes) * 100} color="gray" aria-label={t`Trash`} />
        </Progress.Root>
      )}
    </div>
  )
}

function Treemap({ server, measured }: { server: Server; measured: readonly Measured[] }) {
  const { ref, width, height } = useElementSize()
  const aspect = width > 0 && height > 0 ? width / height : 2
  // Smaller than a finger, it is for looking at: the list of files leads there too.
  const isLarge = (tile: Tile<Measured>) => Math.min(tile.width * width, tile.height * height) / 100 >= TARGET_PX
  const largest = measured.toSorted((a, b) => b.sizeBytes - a.sizeBytes).slice(0, SHOWN_AT_MOST)
  return (
    <div ref={ref} className={`card ${css.map}`}>
      {largest.length === 0 && <Skeleton height="100%" />}
      {tilesOf(largest, aspect).map((tile) => (
        <MapTile key={tile.item.path} server={server} tile={tile} isLarge={isLarge(tile)} />
      ))}
    </div>
  )
}

interface MapTileProps {
  server: Server
  tile: Tile<Measured>
  isLarge: boolean
}

function MapTile({ server, tile: { item, x, y, width, height }, isLarge }: MapTileProps) {
  const { i18n } = useLingui()
  const [, navigate] = useLocation()
  const size = `${item.isPartial ? '≥ ' : ''}${formatBytes(item.sizeBytes, i18n.locale)}`
  const label = (
    <>
      {item.name}: {size}
      {item.isFolder && (
        <>
          , <Plural value={item.files} one="# file" other="# files" />
        </>
      )}
    </>
  )
  const share = (width * height) / 100
  const position = {
    ...{ left: `${x}%`, top: `${y}%`, width: `${width}%`, height: `${height}%` },
    '--tint': `${Math.round(10 + share * 0.35)}%`,
  }
  const content = (
    <>
      <span className="cut">{item.name}</span>
      <span className={css.size}>{size}</span>
    </>
  )
  return (
    <Tooltip label={label}>
      {item.isFolder && isLarge ? (
        <button
          type="button"
          className={css.tile}
          data-kind="folder"
          style={position}
          onClick={() => navigate(`${hrefOf(server.id, item.path)}?show=usage`)}
        >
          {content}
        </button>
      ) : (
        <div className={css.tile} data-kind={item.isFolder ? 'folder' : undefined} style={position}>
          {content}
        </div>
      )}
    </Tooltip>
  )
}
