"""The tests that prove each equation of docs/mathematics.md, and the page that lists them.

    python -m tests.mathematics_appendix

writes docs/mathematics-tests.md anew. A line of ``TESTS`` holds the number of a row of docs/mathematics.md, a file of
tests/, and the names of tests in it without their ``test_``.
"""

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
DOCUMENT = REPOSITORY / "docs" / "mathematics.md"
APPENDIX = REPOSITORY / "docs" / "mathematics-tests.md"
NUMBER = re.compile(r"\d+\.\d+")
HEAD = """\
# Tests of the equations

[From the equations to the functions](mathematics.md)

`python -m tests.mathematics_appendix` writes this page. Numbers are those of the rows there. Tests are named without
their `test_`, after their file in `tests/`."""
TESTS = """
1.1 attention/test_kernels.py: outputs_and_gradients_equal_the_reference
1.1 test_rotary.py: outputs_and_gradients_equal_the_loops strided_views_turn_as_copies_of_them
1.2 analysis/test_decay.py: frequencies_are_those_of_the_rotation
1.3 test_rotary.py: dot_products_depend_on_the_distance_alone
1.4 test_rotary.py: norms_are_kept
1.5 test_rotary.py: the_inverse_undoes_the_rotation
1.6 test_rotary.py: an_offset_shifts_all_positions_and_tabulates_nothing_far_before_it
1.6 test_rotary.py: positions_may_be_any_numbers_for_all_rows_or_for_each
1.7 test_rotary.py: the_table_grows_on_demand_and_keeps_its_values
1.7 test_rotary.py: theta_is_in_the_checkpoint_if_it_is_learned_and_only_then
1.8 test_rotary.py: the_permutation_turns_interleaved_vectors_into_half_vectors the_permutation_needs_pairs
1.9 test_rotary.py: permuted_projection_weights_give_the_same_scores
1.10 test_rotary.py: features_beyond_rotary_dim_pass_and_the_others_turn_as_a_smaller_head an_odd_head_may_turn_in_part
1.10 test_rotary.py: a_rotary_dim_that_does_not_fit_is_an_error
1.11 test_rotary.py: gradients_of_theta_equal_finite_differences_and_the_loops
1.11 test_rotary.py: the_gradient_of_a_float32_theta_is_summed_as_in_float64 training_moves_theta
1.12 test_rotary.py: theta_is_in_the_checkpoint_if_it_is_learned_and_only_then
1.12 test_rotary.py: theta_and_random_features_stay_float32_where_the_model_becomes_half
1.13 test_rotary.py: phases_are_right_at_position_one_million float64_after_float32_is_still_exact
1.14 test_rotary.py: half_precision_is_lost_in_the_rounding_of_the_output_only
1.15 test_rotary.py: the_arithmetic_is_not_under_automatic_mixed_precision phases_stay_exact_under_auto_cast
1.16 test_rotary_static_graphs.py: saved_graphs_rotate_any_length_and_batch_also_at_position_one_million
1.16 test_rotary_static_graphs.py: saved_graphs_take_half_precision saved_graphs_take_positions
1.16 test_rotary_static_graphs.py: to_static_without_further_arguments_changes_nothing
1.16 test_rotary_static_graphs.py: gradients_through_static_graphs_equal_those_without
1.17 test_rotary.py: linear_scaling_divides_positions
1.18 test_rotary.py: ntk_scaling_changes_the_base_so_that_the_slowest_frequency_is_interpolated
1.18 test_rotary.py: ntk_scaling_of_a_single_frequency_is_an_error
1.19 test_rotary.py: yarn_keeps_fast_frequencies_interpolates_slow_ones_and_mixes_between
1.19 test_rotary.py: yarn_with_other_bounds_equals_the_equation
1.20 test_rotary.py: yarn_multiplies_scores_by_the_square_of_its_amplitude the_inverse_undoes_the_rotation
1.21 test_rotary.py: a_factor_of_one_changes_nothing
2.1 attention/test_kernels.py: outputs_and_gradients_equal_the_reference
2.1 attention/test_softmax.py: large_scores_pick_one_value
2.2 attention/test_kernels.py: every_placement_equals_the_reference_and_is_relative_or_not_as_it_says
2.3 attention/test_kernels.py: padded_keys_have_no_influence a_padded_batch_equals_each_text_alone
2.3 attention/test_kernels.py: a_text_of_padding_alone_gives_no_nan_and_zero_in_linear_attention
2.4 attention/test_kernels.py: packed_texts_equal_the_reference packed_texts_equal_each_text_alone
2.4 attention/test_kernels.py: other_segments_have_no_influence_at_all
2.4 attention/test_kernels.py: later_tokens_have_no_influence_and_a_query_without_keys_gets_zero
2.4 attention/test_kernels.py: segments_with_gaps_are_right_in_softmax_and_an_error_in_linear_attention
2.4 attention/test_linear.py: a_gamma_of_one_is_no_decay_and_one_segment_is_none
2.5 attention/test_softmax.py: dropout_acts_on_the_weights
2.6 attention/test_multi_head.py: outputs_and_gradients_equal_one_reference_for_each_head
2.7 attention/test_kernels.py: outputs_and_gradients_equal_the_reference fewer_queries_than_keys_are_the_last_ones
2.7 attention/test_kernels.py: every_placement_equals_the_reference_and_is_relative_or_not_as_it_says
2.7 attention/test_kernels.py: packed_texts_equal_the_reference packed_texts_equal_each_text_alone
2.7 attention/test_kernels.py: other_segments_have_no_influence_at_all
2.7 attention/test_softmax.py: blocks_equal_softmax_attention_with_all_other_scores_far_down
2.7 roformer/test_static_graphs.py: saved_models_take_positions saved_softmax_models_take_packed_texts
2.8 attention/test_softmax.py: a_window_over_the_whole_text_is_softmax_attention
2.9 attention/test_softmax.py: what_is_out_of_sight_has_no_influence
2.10 attention/test_softmax.py: a_query_without_a_key_in_sight_gets_zero_and_no_gradient_is_nan
2.10 attention/test_kernels.py: padded_keys_have_no_influence a_padded_batch_equals_each_text_alone
2.11 attention/test_kernels.py: no_square_of_the_length_is_ever_held
2.12 attention/test_multi_head.py: pieces_give_the_whole padding_on_the_left_enters_no_cache
3.1 attention/test_kernels.py: outputs_and_gradients_equal_the_reference
3.1 attention/test_linear.py: every_feature_map_and_normalizer_equals_the_double_sum
3.2 attention/test_kernels.py: no_square_of_the_length_is_ever_held
3.3 attention/test_linear.py: without_rotation_outputs_are_averages_of_the_values
3.4 attention/test_linear.py: the_denominator_is_positive_and_unrotated
3.4 attention/test_linear.py: relative_positions_alone_count_with_more_features_than_head_dim
3.4 attention/test_kernels.py: every_placement_equals_the_reference_and_is_relative_or_not_as_it_says
3.5 attention/test_linear.py: one_plus_cosine_equals_the_double_sum_and_stays_a_probability
3.6 attention/test_linear.py: every_feature_map_and_normalizer_equals_the_double_sum
3.7 attention/test_linear.py: a_denominator_under_the_bound_is_cut_at_the_bound
3.7 attention/test_linear.py: features_that_hardly_overlap_are_bounded_as_in_the_double_sum
3.7 attention/test_linear.py: a_rotated_numerator_without_overlap_of_features_stays_within_the_bound
3.7 attention/test_linear.py: no_output_exceeds_the_largest_value_by_more_than_the_bound
3.7 attention/test_linear.py: tiny_features_are_averaged_as_well_as_others
3.8 attention/test_linear.py: without_normalizer_outputs_have_root_mean_square_one_whatever_the_length
3.9 attention/test_kernels.py: a_text_of_padding_alone_gives_no_nan_and_zero_in_linear_attention
3.9 attention/test_kernels.py: padded_keys_have_no_influence a_padded_batch_equals_each_text_alone
3.9 attention/test_linear.py: padding_alone_gives_zero_with_every_map
3.15 attention/test_feature_maps.py: equals_elu_plus_one_in_float64 the_slope_is_one_from_zero_on_and_the_value_below
3.15 attention/test_feature_maps.py: the_slope_at_zero_is_exactly_one positive_far_below_zero
3.15 attention/test_feature_maps.py: positive_and_right_when_every_step_rounds_to_bfloat16
3.16 attention/test_feature_maps.py: elementwise_maps_and_their_slopes_equal_the_formula
3.16 attention/test_linear.py: a_query_or_all_keys_without_positive_feature_give_zero
3.17 attention/test_feature_maps.py: softmax_exp_is_a_softmax_over_features_and_one_over_the_keys_of_the_sequence
3.18 attention/test_feature_maps.py: random_features_estimate_the_softmax_kernel
3.18 attention/test_feature_maps.py: more_random_features_come_closer_to_softmax_attention
3.19 attention/test_feature_maps.py: random_features_are_orthogonal_in_blocks_with_gaussian_lengths
3.19 attention/test_feature_maps.py: random_features_have_any_number
3.20 attention/test_feature_maps.py: one_plus_cosine_lies_between_zero_and_two_and_holds_at_the_zero_vector
3.20 attention/test_linear.py: one_plus_cosine_equals_the_double_sum_and_stays_a_probability
3.21 attention/test_linear.py: one_plus_cosine_equals_the_double_sum_and_stays_a_probability
3.23 attention/test_feature_maps.py: without_rotation_weights_of_every_map_are_a_probability
3.24 attention/test_kernels.py: outputs_and_gradients_equal_the_reference
3.24 attention/test_linear.py: outputs_do_not_depend_on_the_size_of_the_chunks
3.25 attention/test_kernels.py: later_tokens_have_no_influence_and_a_query_without_keys_gets_zero
3.25 attention/test_linear.py: the_last_token_sees_what_it_sees_in_bidirectional_attention
3.26 attention/test_kernels.py: no_square_of_the_length_is_ever_held
3.27 attention/test_linear.py: a_thousand_steps_equal_the_causal_form_and_leave_its_state
3.27 attention/test_linear.py: states_are_float32_at_least_are_not_changed_and_pass_gradients_back
3.28 attention/test_linear.py: every_feature_map_and_normalizer_equals_the_double_sum
3.29 attention/test_kernels.py: packed_texts_equal_the_reference packed_texts_equal_each_text_alone
3.29 attention/test_kernels.py: other_segments_have_no_influence_at_all no_square_of_the_length_is_ever_held
3.29 attention/test_linear.py: sums_within_segments_do_not_depend_on_the_size_of_the_chunks
3.30 attention/test_kernels.py: outputs_and_gradients_equal_the_reference packed_texts_equal_the_reference
3.30 attention/test_linear.py: every_feature_map_and_normalizer_equals_the_double_sum
3.30 attention/test_linear.py: a_gamma_of_one_is_no_decay_and_one_segment_is_none
3.32 attention/test_linear.py: both_sides_of_a_decay_share_the_diagonal
3.33 attention/test_linear.py: outputs_do_not_depend_on_the_size_of_the_chunks
3.33 attention/test_kernels.py: no_square_of_the_length_is_ever_held
3.36 attention/test_linear.py: sums_beyond_half_precision_are_right
3.36 attention/test_kernels.py: half_precision_loses_no_more_than_its_rounding
3.36 attention/test_feature_maps.py: every_map_gives_finite_outputs_and_gradients_in_half_precision
3.37 attention/test_linear.py: sums_are_taken_outside_auto_cast
3.38 attention/test_kernels.py: a_text_of_padding_alone_gives_no_nan_and_zero_in_linear_attention
3.38 attention/test_linear.py: padding_alone_gives_zero_with_every_map
4.1 attention/test_linear.py: rope_on_values_and_outputs_is_a_complex_linear_recurrence
4.2 attention/test_kernels.py: outputs_and_gradients_equal_the_reference
4.3 attention/test_kernels.py: every_placement_equals_the_reference_and_is_relative_or_not_as_it_says
4.4 attention/test_kernels.py: every_placement_equals_the_reference_and_is_relative_or_not_as_it_says
4.5 attention/test_kernels.py: every_placement_equals_the_reference_and_is_relative_or_not_as_it_says
4.6 attention/test_multi_head.py: shared_keys_and_values_stay_relative_with_qkvo_and_not_without_o
4.6 attention/test_multi_head.py: shared_projections_attend_with_the_keys_as_values
4.6 attention/test_multi_head.py: the_cache_of_shared_keys_and_values_is_one_tensor_where_both_turn_or_none
4.7 attention/test_multi_head.py: pieces_give_the_whole pieces_give_the_whole_for_linear_options
4.7 attention/test_multi_head.py: padding_on_the_left_enters_no_cache caches_are_not_changed_so_that_texts_can_branch
4.8 attention/test_linear.py: a_thousand_steps_equal_the_causal_form_and_leave_its_state
4.8 attention/test_linear.py: states_are_float32_at_least_are_not_changed_and_pass_gradients_back
4.9 roformer/test_generation.py: a_cache_gives_the_hidden_states_of_the_whole generated_tokens_are_those_without_a_cache
4.10 test_positions.py: sinusoidal_positions_are_those_of_the_equation_up_to_a_million
4.10 test_positions.py: sinusoidal_positions_see_a_shift_as_a_rotation
4.11 test_positions.py: learned_positions_are_rows_of_the_table_and_trained
4.11 test_positions.py: beyond_the_learned_positions_is_an_error_that_names_the_limit
4.12 test_positions.py: the_bias_is_symmetric_and_falls_with_the_distance
4.12 test_positions.py: attention_with_alibi_equals_the_reference_with_gradients
4.12 test_positions.py: attention_with_alibi_does_not_see_a_shift_of_all_positions
4.13 test_positions.py: slopes_of_powers_of_two_are_the_geometric_sequence_of_the_paper
4.13 test_positions.py: other_numbers_of_heads_take_every_other_slope_of_the_next_power_of_two
5.1 roformer/test_variants.py: a_model_equals_its_plain_reference
5.2 test_layers.py: rms_norm_has_mean_square_one_and_the_gradient_of_its_equation
5.3 roformer/test_heads.py: logits_of_the_vocabulary_equal_their_equation
5.4 roformer/test_recompute.py: recompute_gives_the_same_gradients_with_dropout
5.5 test_convolution.py: outputs_and_gradients_equal_the_loops saved_graphs_take_any_batch_and_length
5.5 test_convolution.py: texts_equal_those_alone_whatever_stands_at_padding_and_in_other_segments
5.6 roformer/test_variants.py: a_model_equals_its_plain_reference packed_texts_equal_each_text_alone
5.7 test_convolution.py: without_training_it_gives_its_center
6.1 global_pointer/test_heads.py: logits_and_gradients_equal_the_reference
6.2 global_pointer/test_heads.py: logits_and_gradients_equal_the_reference a_further_type_costs_what_the_docstring_says
6.3 global_pointer/test_heads.py: with_equal_tokens_logits_depend_on_the_length_alone
6.3 global_pointer/test_heads.py: with_rope_logits_depend_on_position without_rope_logits_do_not_depend_on_position
6.3 global_pointer/test_heads.py: padding_on_the_left_shifts_the_logits
6.4 global_pointer/test_positions.py: tokens_taken_out_of_a_text_score_as_in_it_when_they_keep_their_positions
6.4 global_pointer/test_positions.py: a_batch_padded_on_the_left_gives_the_scores_and_gradients_of_each_text_alone
6.4 global_pointer/test_positions.py: gradients_at_given_positions_equal_the_reference
6.4 global_pointer/test_positions.py: a_shift_of_all_positions_of_a_text_changes_nothing
6.4 global_pointer/test_positions.py: positions_matter_with_rope_and_not_without counting_from_0_is_the_default
6.5 global_pointer/test_heads.py: what_is_no_span_holds_the_masked_logit
6.5 global_pointer/test_heads.py: the_masked_logit_is_finite_in_float16_and_its_exponential_is_zero
6.5 global_pointer/test_heads.py: masked_pairs_and_padding_send_back_no_gradient
6.6 global_pointer/test_losses.py: values_and_gradients_equal_the_reference the_gradient_equals_the_finite_difference
6.6 global_pointer/test_losses.py: one_class_is_two_sided_cross_entropy
6.7 global_pointer/test_losses.py: the_gradient_pushes_positives_up_and_negatives_down goes_to_zero_as_scores_separate
6.8 global_pointer/test_losses.py: finite_and_right_for_huge_scores finite_when_all_classes_are_on_one_side
6.9 global_pointer/test_losses.py: masked_spans_cost_nothing
6.10 global_pointer/test_sparse_loss.py: values_and_gradients_equal_the_dense_form
6.10 global_pointer/test_sparse_loss.py: the_gradient_equals_the_finite_difference rows_number_the_leading_axes
6.10 global_pointer/test_sparse_loss.py: spans_of_a_head_give_the_dense_loss_and_parameter_gradients
6.11 global_pointer/test_sparse_loss.py: negatives_keep_value_and_gradient_beside_dominating_positives
6.11 global_pointer/test_sparse_loss.py: scores_up_to_a_thousand_equal_the_dense_form
6.12 global_pointer/test_sparse_loss.py: two_thousand_types_train_from_lists_of_spans
6.13 global_pointer/test_sparse_loss.py: without_positives_only_the_negatives_count
6.13 global_pointer/test_sparse_loss.py: rows_without_positives_are_untouched_by_those_of_other_rows
6.14 global_pointer/test_decoding.py: ends_are_exclusive scores_above_the_threshold_make_a_span
6.14 global_pointer/test_decoding.py: a_score_of_zero_is_no_span each_row_has_its_own_spans the_order_is_start_end_type
6.15 global_pointer/test_decoding.py: nested_and_overlapping_spans_and_spans_of_two_types_are_kept
6.15 global_pointer/test_heads.py: nested_entities_can_be_scored_and_decoded
6.16 global_pointer/test_band.py: products_and_ends_are_those_of_the_definition
6.17 global_pointer/test_band.py: scores_and_gradients_equal_the_reference
6.17 global_pointer/test_band.py: scores_and_gradients_equal_those_of_the_full_head
6.18 global_pointer/test_band.py: what_is_past_the_end_or_masked_holds_the_masked_logit_and_sends_back_no_gradient
6.19 global_pointer/test_band.py: the_loss_of_a_band_is_that_of_the_full_head_without_longer_spans
6.19 global_pointer/test_band.py: spans_become_rows_and_classes
6.20 global_pointer/test_band.py: decoding_a_band_gives_the_spans_of_the_full_head_up_to_its_length
6.21 global_pointer/test_band.py: a_hundred_thousand_tokens_are_scored_learned_and_decoded
6.22 ner/prediction/test_windows.py: windows_cover_the_text_and_neighbors_share_more_than_the_overlap
6.22 ner/prediction/test_windows.py: only_cuts_bound_a_window
6.22 ner/prediction/test_windows.py: every_short_span_is_decided_by_one_window_which_holds_it_with_text_around
6.23 ner/prediction/test_windows.py: the_window_with_the_most_text_around_decides_alone
6.23 ner/prediction/test_windows.py: what_touches_a_cut_is_dropped_and_what_touches_the_end_of_the_text_is_not
6.23 ner/prediction/test_windows.py: pieces_of_an_entity_at_a_cut_never_come_with_it
6.23 ner/prediction/test_prediction.py: no_entity_up_to_the_overlap_is_lost_or_found_twice_in_texts_of_any_length
6.24 ner/prediction/test_thresholds.py: no_other_thresholds_have_a_higher_f1 a_thousand_types
6.25 ner/prediction/test_thresholds.py: a_threshold_stands_in_the_middle_of_the_scores_it_separates
6.25 ner/prediction/test_thresholds.py: zero_stays_where_nothing_is_better
6.26 ner/prediction/test_thresholds.py: half_of_the_f1_is_best_where_probabilities_are_right
6.27 ner/prediction/test_temperatures.py: a_known_temperature_is_found_again
6.27 ner/prediction/test_temperatures.py: it_is_the_minimum_of_the_likelihood_with_the_labels_of_platt
6.28 ner/prediction/test_temperatures.py: as_many_candidates_as_the_prior_count_as_much
6.28 ner/prediction/test_temperatures.py: a_type_with_few_candidates_takes_the_temperature_of_all
6.29 ner/prediction/test_temperatures.py: the_likelihood_of_the_fitted_data_does_not_get_worse
7.1 analysis/test_decay.py: frequencies_are_those_of_the_rotation
7.2 analysis/test_decay.py: pair_products_give_the_dot_product_of_any_vectors
7.3 analysis/test_decay.py: mean_partial_sums_equal_the_plain_loop
7.3 analysis/test_decay.py: mean_partial_sums_start_at_half_of_pairs_plus_one_and_are_never_larger
7.3 analysis/test_decay.py: bound_decays_with_the_distance
7.4 analysis/test_decay.py: summation_by_parts_gives_the_dot_product
7.4 analysis/test_decay.py: abel_bound_holds_for_random_vectors_and_is_the_product_of_its_factors
7.4 analysis/test_decay.py: abel_bound_can_be_reached
7.5 analysis/test_decay.py: ones_scores_are_the_dot_products_of_rotated_ones
7.6 analysis/test_decay.py: slowest_cosine_is_zero_at_the_quarter_period_and_positive_before
7.6 analysis/test_decay.py: octave_averages_of_ones_fall_to_the_octave_of_the_quarter_period_and_rise_after_it
7.6 analysis/test_decay.py: slope_of_ones_with_many_pairs_is_the_difference_of_the_fastest_and_the_slowest_cosine
7.7 analysis/test_decay.py: octaves_are_whole_and_begin_at_one
7.7 analysis/test_decay.py: falls_until_is_the_last_index_before_a_value_that_is_not_lower
7.8 analysis/test_decay.py: theta_zero_is_constant theta_one_is_periodic_without_decay
"""


def cells_of(line):
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]


def proofs():
    """``{"1.1": [("test_rotary.py", "norms_are_kept"), ...]}``."""
    found = {}
    for line in TESTS.split("\n"):
        if line:
            place, names = line.split(": ")
            number, file = place.split()
            found.setdefault(number, []).extend((file, name) for name in names.split())
    return found


def appendix():
    """The text of docs/mathematics-tests.md: the sections and equations of docs/mathematics.md, with their tests."""
    tests, lines, section = proofs(), [HEAD], None
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if line.startswith(("## ", "### ")):
            section = f"\n## {line.lstrip('# ')}"
        elif line.startswith("|") and NUMBER.fullmatch(cells_of(line)[0]):
            number, equation, _ = cells_of(line)
            if section is not None:
                lines.append(f"{section}\n\n| | equation | tests |\n|---|---|---|")
                section = None
            files = {}
            for file, name in tests.get(number, []):
                files.setdefault(file, []).append(f"`{name}`")
            shown = "; ".join(f"`{file}`: {', '.join(names)}" for file, names in files.items())
            lines.append(f"| {number} | {equation} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    APPENDIX.write_text(appendix(), encoding="utf-8")
