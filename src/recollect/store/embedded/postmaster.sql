-- name: identify
select current_setting('data_directory')
