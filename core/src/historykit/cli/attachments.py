"""Commands about the files that belong to messages."""

from __future__ import annotations

from dataclasses import asdict, replace

import click

from historykit.attachment_sweep import SweepReport
from historykit.cli.output import print_json, printable
from historykit.cli.running import opened, store_options
from historykit.config import HistoryConfig
from historykit.errors import ConfigError

__all__ = ["attachments"]


@click.group()
def attachments() -> None:
    """Look after the files that belong to messages."""


@attachments.command()
@store_options("--backend")
@click.option("--attachments", "place", metavar="PLACE", help="The folder or URL of the files.")
@click.option(
    "--older-than",
    type=click.FloatRange(min=0),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="Leave alone what is younger: its message may be on its way.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be deleted, and delete nothing.")
@click.option("--verify", is_flag=True, help="Read all messages, to find any without their files.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
async def sweep(
    config: HistoryConfig,
    place: str | None,
    older_than: float,
    dry_run: bool,
    verify: bool,
    as_json: bool,
) -> None:
    """Delete the files that no message has: what a crash left, and what retention let go.

    The exit code is 1 where a message is without its files, or cannot be read; of a session with
    such a message nothing is deleted.
    """
    if place is not None:
        config = replace(config, attachments=place)
    if config.attachments is None:
        raise ConfigError(
            "no place of attachments is configured: name it with --attachments, as attachments "
            "under [history] in the TOML file, or as HISTORYKIT_ATTACHMENTS in the environment",
            field="attachments",
        )
    async with opened(config, create=False) as history:
        report = await history.sweep_attachments(
            older_than=older_than, dry_run=dry_run, verify=verify
        )
    if as_json:
        print_json(asdict(report))
    else:
        _print(report)
    if report.missing or report.unreadable:
        click.get_current_context().exit(1)


def _print(report: SweepReport) -> None:
    for url in report.orphans:
        click.echo(printable(url))
    done = "would be deleted" if report.dry_run else "deleted"
    click.echo(
        f"{len(report.orphans)} of {report.blobs} files {done}, {report.orphan_bytes} bytes; "
        f"{report.young} without a message are too young"
    )
    for missing in report.missing:
        click.echo(
            f"Error: message {missing.message_id} of session {missing.session_id!r} is without "
            f"{printable(missing.url)}",
            err=True,
        )
    for key in report.unreadable:
        click.echo(
            f"Error: session {key.session_id!r} has a message that cannot be read; nothing of it "
            "was deleted",
            err=True,
        )
